//! A snapshot since another one: what `clear counters` leaves to see. Counters themselves never go back, so the account of
//! all frames stays whole.

use super::model::{Port, Snapshot, Traffic};

const fn traffic(now: &mut Traffic, then: Traffic) {
    now.packets = now.packets.saturating_sub(then.packets);
    now.bytes = now.bytes.saturating_sub(then.bytes);
}

fn each(now: &mut [u64], then: &[u64]) {
    for (now, then) in now.iter_mut().zip(then) {
        *now = now.saturating_sub(*then);
    }
}

/// Takes what had been counted at `then` off the ports' counters. Depths, peaks, NPCC and the account stay as they are.
pub fn since(snapshot: &mut Snapshot, then: &Snapshot) {
    for (now, then) in snapshot.ports.iter_mut().zip(&then.ports) {
        port(now, then);
    }
}

fn port(now: &mut Port, then: &Port) {
    for (now, then) in [
        (&mut now.rx, then.rx),
        (&mut now.tx, then.tx),
        (&mut now.originated, then.originated),
        (&mut now.consumed, then.consumed),
        (&mut now.punted, then.punted),
    ] {
        traffic(now, then);
    }
    for (reason, count) in &mut now.drops {
        *count = count.saturating_sub(then.drops.get(reason).copied().unwrap_or(0));
    }
    now.drops.retain(|_, count| *count > 0);
    let (device, before) = (&mut now.device_drops, then.device_drops);
    device.rx_missed = device.rx_missed.saturating_sub(before.rx_missed);
    device.rx_nombuf = device.rx_nombuf.saturating_sub(before.rx_nombuf);
    device.rx_errors = device.rx_errors.saturating_sub(before.rx_errors);
    device.tx_errors = device.tx_errors.saturating_sub(before.tx_errors);
    now.lossless_lost = now.lossless_lost.saturating_sub(then.lossless_lost);
    each(&mut now.pfc.rx, &then.pfc.rx);
    each(&mut now.pfc.tx, &then.pfc.tx);
    let (roce, before) = (&mut now.roce, then.roce);
    roce.ce = roce.ce.saturating_sub(before.ce);
    roce.cnp = roce.cnp.saturating_sub(before.cnp);
    roce.cnp_out = roce.cnp_out.saturating_sub(before.cnp_out);
    roce.nak = roce.nak.saturating_sub(before.nak);
    roce.rnr = roce.rnr.saturating_sub(before.rnr);
    roce.unsupported = roce.unsupported.saturating_sub(before.unsupported);
    for (now, then) in now.queues.iter_mut().zip(&then.queues) {
        now.enqueued = now.enqueued.saturating_sub(then.enqueued);
        now.enqueued_bytes = now.enqueued_bytes.saturating_sub(then.enqueued_bytes);
        now.dropped = now.dropped.saturating_sub(then.dropped);
        now.wred_dropped = now.wred_dropped.saturating_sub(then.wred_dropped);
        now.ecn_marked = now.ecn_marked.saturating_sub(then.ecn_marked);
    }
    for (now, then) in now.groups.iter_mut().zip(&then.groups) {
        now.dropped = now.dropped.saturating_sub(then.dropped);
    }
    flow(now, then);
}

fn flow(now: &mut Port, then: &Port) {
    let (now, then) = (&mut now.flow, &then.flow);
    now.xoff_buffer = now.xoff_buffer.saturating_sub(then.xoff_buffer);
    now.xoff_cpu = now.xoff_cpu.saturating_sub(then.xoff_cpu);
    now.late_refreshes = now.late_refreshes.saturating_sub(then.late_refreshes);
    now.global_pause = now.global_pause.saturating_sub(then.global_pause);
    now.invalid = now.invalid.saturating_sub(then.invalid);
    for (now, then) in now.priorities.iter_mut().zip(&then.priorities) {
        now.rx_pauses = now.rx_pauses.saturating_sub(then.rx_pauses);
        now.tx_pauses = now.tx_pauses.saturating_sub(then.tx_pauses);
        now.rx_paused_us -= then.rx_paused_us;
        now.tx_paused_us -= then.tx_paused_us;
        now.storms = now.storms.saturating_sub(then.storms);
        now.storms_ended = now.storms_ended.saturating_sub(then.storms_ended);
        now.storm_tx_dropped = now.storm_tx_dropped.saturating_sub(then.storm_tx_dropped);
        now.storm_rx_dropped = now.storm_rx_dropped.saturating_sub(then.storm_rx_dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_start_anew_and_depths_stay() {
        let mut now = Snapshot::default();
        let mut port = Port {
            rx: Traffic {
                packets: 10,
                bytes: 1000,
            },
            ..Port::default()
        };
        port.pfc.tx = [0, 0, 0, 7, 0, 0, 0, 0];
        port.drops.insert("no_route".to_owned(), 3);
        now.ports.push(port);
        let then = now.clone();
        now.ports[0].rx.packets = 15;
        now.ports[0].drops.insert("runt".to_owned(), 1);
        since(&mut now, &then);
        assert_eq!(
            now.ports[0].rx,
            Traffic {
                packets: 5,
                bytes: 0
            }
        );
        assert_eq!(now.ports[0].pfc.tx, [0; 8]);
        assert_eq!(now.ports[0].drops.keys().collect::<Vec<_>>(), ["runt"]);
    }
}
