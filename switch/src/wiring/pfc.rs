//! Pause settings: each port's flow control as decided when the port was opened, and the ingress groups of the buffer that go with it.

use npcc_config::sizing::{ControlSizing, Link, Lossless, RX_BURST, sends_pause};
use npcc_config::{Config, resolved};
use npcc_dpdk::LinkPause;
use npcc_pipeline::buffer::{BufferConfig, ControlReserve, GroupConfig};
use npcc_pipeline::datapath::LosslessConfig;
use npcc_pipeline::pause::{PauseConfig, WatchdogConfig};
use npcc_pipeline::units::BitRate;

use super::backend::{Backend, BackendChoice, SelfTest};
use super::ports::OpenPort;

/// Full receive bursts in a row that mean a ring of 1024 is over half full, for drivers that do not report its fill.
const PRESSURE: u16 = 16;

/// Flow control of a port.
#[derive(Debug, Clone)]
pub struct PfcState {
    /// Back end chosen for the port, and the reason.
    pub choice: BackendChoice,
    /// Result of the pause frame sent at start.
    pub self_test: SelfTest,
    /// Bit n: the peer is asked to pause priority n.
    pub send: u8,
    /// Bit n: the peer's pauses of priority n are obeyed.
    pub honour: u8,
    /// Speed of the link, from which quanta are computed.
    pub rate: BitRate,
    /// Headroom of each lossless priority in wire bytes; 0 without pause.
    pub headroom: u64,
    /// Reserve of each lossless priority in wire bytes.
    pub reserved: u64,
    /// Distance below the pause threshold at which a sender may resume, in wire bytes.
    pub xon_offset: u64,
    /// Number of workers that receive from the port.
    pub receivers: u64,
    /// Wire bytes of a burst of full frames: as much may still be sent once a pause has arrived.
    pub burst: u64,
    /// Most wire bytes in the device's transmit ring; `None` for a virtual device.
    pub outstanding: Option<u64>,
    /// True if the driver has a call that may say what the transmit ring holds.
    pub tx_answers: bool,
    /// True if the driver reports the fill of the receive ring.
    pub tells_fill: bool,
    /// 802.3x pause of the whole link, as the device has it; `None` if its driver does not report it.
    pub link_pause: Option<LinkPause>,
    /// The driver's reason for which that could not be disabled.
    pub link_pause_error: Option<String>,
}

impl PfcState {
    /// Returns the flow control of a port by this back end and with these priorities (`send`, `honour`), before [`lossless`] completes it and
    /// as of a device that answers nothing.
    #[must_use]
    pub const fn of(choice: BackendChoice, (send, honour): (u8, u8)) -> PfcState {
        PfcState {
            choice,
            self_test: SelfTest::NotRun,
            send,
            honour,
            rate: BitRate(0),
            headroom: 0,
            reserved: 0,
            xon_offset: 0,
            receivers: 1,
            burst: 0,
            outstanding: None,
            tx_answers: false,
            tells_fill: false,
            link_pause: None,
            link_pause_error: None,
        }
    }
}

/// Returns each port's flow control as decided when the port was opened, for [`lossless`] to complete.
#[must_use]
pub fn states(config: &Config, ports: &[OpenPort]) -> Vec<PfcState> {
    let plans = config.ports.iter().zip(ports);
    let state = |(resolved, open): (&resolved::Port, &OpenPort)| {
        let masks = masks(config, resolved, open.pause.backend);
        PfcState {
            self_test: open.self_test,
            receivers: open.receivers,
            outstanding: open.outstanding,
            tx_answers: open.tx_answers,
            tells_fill: open.tells_fill,
            link_pause: open.link_pause,
            link_pause_error: open.link_pause_error.clone(),
            ..PfcState::of(open.pause.clone(), masks)
        }
    };
    plans.map(state).collect()
}

/// Returns the priorities that a port's peer is asked to pause, and those whose pause is obeyed, as masks.
#[must_use]
pub fn masks(config: &Config, resolved: &resolved::Port, backend: Backend) -> (u8, u8) {
    let on = backend != Backend::None;
    let classes = if on { resolved.qos.lossless_mask() } else { 0 };
    let sends = sends_pause(resolved.pfc, config.pfc.backend, resolved.device.id());
    (if sends { classes } else { 0 }, classes)
}

/// Returns the datapath's lossless settings for links of these speeds; writes what follows from them into `ports_pfc`.
#[must_use]
pub fn lossless(config: &Config, links: &[BitRate], ports_pfc: &mut [PfcState]) -> LosslessConfig {
    let buffer = buffer(config, links, ports_pfc);
    let pauses = ports_pfc.iter().map(|pfc| PauseConfig {
        send: pfc.send,
        honour: pfc.honour,
        rate: pfc.rate,
        pressure: if pfc.tells_fill { 0 } else { PRESSURE },
        watchdog: (pfc.honour != 0).then(|| watchdog(config)),
    });
    let ports = pauses.collect();
    LosslessConfig { buffer, ports }
}

fn link(config: &Config, resolved: &resolved::Port, speed: BitRate, pfc: &PfcState) -> Link {
    let link = Link::of(resolved, speed, config.buffer.loop_time, pfc.receivers);
    // Only a driver that has the call may be given a batch more.
    let batch = if pfc.tx_answers { link.batch } else { 0 };
    Link { batch, ..link }
}

/// Divides the pool for links of these speeds.
fn division(config: &Config, links: &[BitRate], ports_pfc: &[PfcState]) -> Lossless {
    let ports = config.ports.iter().zip(links).zip(ports_pfc);
    let links: Vec<Option<Link>> = ports
        .map(|((resolved, speed), pfc)| {
            (pfc.send != 0).then(|| link(config, resolved, *speed, pfc))
        })
        .collect();
    Lossless::new(&config.buffer, &links, config.linux.integrate)
}

/// Returns the buffer settings for links of these speeds; writes the resulting values into `ports_pfc`.
#[must_use]
pub fn buffer(config: &Config, links: &[BitRate], ports_pfc: &mut [PfcState]) -> BufferConfig {
    let ports = config.ports.iter().zip(links);
    for ((resolved, speed), pfc) in ports.zip(ports_pfc.iter_mut()) {
        let link = link(config, resolved, *speed, pfc);
        pfc.rate = *speed;
        pfc.burst = RX_BURST * link.frame();
        pfc.outstanding = pfc.outstanding.map(|_| link.outstanding());
    }
    let room = division(config, links, ports_pfc);
    let mut groups = Vec::new();
    for ((resolved, pfc), room) in config.ports.iter().zip(ports_pfc).zip(&room.ports) {
        let classes = resolved.qos.lossless_mask();
        let mut of_port = [GroupConfig::default(); 8];
        if let Some(room) = room {
            pfc.headroom = room.headroom;
            pfc.reserved = room.reserved;
            pfc.xon_offset = room.xon_offset;
            for (n, group) in (0u8..).zip(&mut of_port) {
                if classes & 1 << n != 0 {
                    *group = GroupConfig {
                        lossless: true,
                        reserved: room.reserved,
                        headroom: room.headroom,
                        xon: room.reserved,
                        xon_offset: room.xon_offset,
                    };
                }
            }
        }
        groups.push(of_port);
    }
    let control = ControlSizing::of(
        config.buffer.pool.0,
        config.ports.len(),
        config.linux.integrate,
    );
    let of_port = |port: &resolved::Port| super::path::control_priorities(config, &port.qos);
    let priorities = config
        .ports
        .iter()
        .map(of_port)
        .fold(0, |all, own| all | own);
    let shared = config.buffer.shared_headroom.0;
    BufferConfig {
        pool: super::path::pool(config),
        min_frame: config.buffer.lossless_min_frame.short(),
        shared_headroom: (shared != 0).then_some(room.headroom),
        control: ControlReserve {
            priorities,
            group: control.port / u64::from(priorities.count_ones().max(1)),
            own: control.own,
            linux: control.linux,
        },
        groups,
    }
}

/// Checks that every lossless queue is marked before its senders are paused, at these speeds of links and shapers.
///
/// # Errors
/// Names the queue that is not, and how to fix it.
pub fn marks_in_time(
    config: &Config,
    links: &[BitRate],
    shapers: &[Option<BitRate>],
    ports_pfc: &[PfcState],
) -> Result<(), String> {
    let room = division(config, links, ports_pfc);
    if room.groups == 0 {
        return Ok(());
    }
    for (port, shaper) in config.ports.iter().zip(shapers) {
        let Some(rate) = shaper else { continue };
        let lossless = (0..8)
            .zip(&port.qos.priorities)
            .filter(|(_, resolved)| resolved.lossless);
        for (priority, resolved) in lossless {
            let Some(ecn) = resolved.ecn else { continue };
            let Some(drain) = resolved.drain(Some(*rate)) else {
                continue;
            };
            let kmax = ecn.kmax.bytes_floored(drain, port.mtu);
            if kmax > room.least_xoff {
                return Err(format!(
                    "kmax ({}) of priority {priority} comes to {kmax} bytes on {} at {drain}, above the least XOFF of {}: senders \
                     would be paused before they are marked; lower kmax or raise buffer.pool",
                    ecn.kmax, port.name, room.least_xoff
                ));
            }
        }
    }
    Ok(())
}

const fn watchdog(config: &Config) -> WatchdogConfig {
    let watchdog = &config.pfc.watchdog;
    WatchdogConfig {
        detect: watchdog.detect,
        share: watchdog.share.whole(),
        restore: watchdog.restore,
        poll: watchdog.poll,
        action: watchdog.action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: BitRate = BitRate(100_000_000_000);
    const LOSSLESS: u8 = 1 << 3;

    fn config() -> Config {
        let text = "version: 1\nqos: { profile: roce-lossless }\nbuffer: { pool: 64MB }\nports:\n  - { name: a, device: '0000:3b:00.0', mtu: 4096 }\n";
        npcc_config::parse("t.yaml", text).unwrap().config
    }

    fn state(send: u8, honour: u8, tx_answers: bool) -> PfcState {
        let none = BackendChoice::of(Backend::None, "");
        PfcState {
            tx_answers,
            ..PfcState::of(none, (send, honour))
        }
    }

    /// Law: headroom counts the frames that a driver confirms in batches, and only of a driver that may say what its ring holds.
    #[test]
    fn only_a_driver_that_may_answer_is_given_a_batch_more() {
        let config = config();
        let [with, without] = [true, false].map(|answers| {
            let mut ports = [state(LOSSLESS, LOSSLESS, answers)];
            let _ = buffer(&config, &[RATE], &mut ports);
            ports[0].headroom
        });
        let link = Link::of(&config.ports[0], RATE, config.buffer.loop_time, 1);
        let batch = link.batch * link.frame();
        assert!(batch > 0 && (with - without).abs_diff(batch) < 1024);
    }

    #[test]
    fn a_sender_goes_on_once_its_group_lies_in_the_reserve() {
        let mut ports = [state(LOSSLESS, LOSSLESS, false)];
        let buffer = buffer(&config(), &[RATE], &mut ports);
        let group = buffer.groups[0][3];
        assert!(group.lossless && group.reserved > 0);
        assert_eq!(group.xon, group.reserved);
    }

    /// Law: a port that obeys pauses has a watchdog, whatever it sends itself.
    #[test]
    fn a_watchdog_watches_the_ports_that_obey_pauses() {
        for (send, honour) in [(0, 0), (LOSSLESS, 0), (0, LOSSLESS), (LOSSLESS, LOSSLESS)] {
            let lossless = lossless(&config(), &[RATE], &mut [state(send, honour, false)]);
            assert_eq!(
                lossless.ports[0].watchdog.is_some(),
                honour != 0,
                "{send} {honour}"
            );
        }
    }
}
