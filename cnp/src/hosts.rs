//! Counts per host: CNPs in and out, NAK, RNR, CE. The table has a fixed size: the host longest without a packet makes room for another, hosts
//! that never got a CNP of ours first, and hosts that did only after a minute. Replaced hosts are counted.
//!
//! CNPs given to the worker are all counted. Of CNPs passed and NAKs of a flow, one within about 3 us (2.1 to 3.1) of the last that counted, of
//! either kind, is not. CE is of sampled packets only (ports count all of them).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_pipeline::counters::Counter;
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::bth::RoceClass;

use crate::seqlock::SeqCell;
use npcc_roce::fixed_map::FixedMap;
use npcc_roce::key::{Bits, FlowKey, low32};
use npcc_roce::sample::{PacketSample, SampleFlags};

/// Capacity of the table of hosts.
const HOSTS: usize = 4_096;
/// Time for which a host that got a CNP of ours is kept.
const KEPT: Nanos = Nanos::from_millis(60_000);
/// Lists of the map: hosts that got no CNP of ours, and hosts that did.
const HEARD: u8 = 0;
const SIGNALLED: u8 = 1;
const WORDS: usize = 8;
const LIVE: u64 = 1;
const V6: u64 = 2;

/// Counts of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "config", derive(schemars::JsonSchema))]
pub struct Counts {
    /// CNPs that we sent to it.
    pub cnps_sent: u64,
    /// CNPs of receivers to it that passed through.
    pub cnps_passed: u64,
    /// NAKs to it: lost or bad packets.
    pub naks: u64,
    /// Receiver-not-ready NAKs to it.
    pub rnr_naks: u64,
    /// Sampled packets to it that arrived marked CE.
    pub ce: u64,
}

/// The readers' side of the host counters.
#[derive(Debug)]
pub struct HostView {
    cells: Box<[SeqCell<WORDS>]>,
    /// Packets of hosts for which the table had no room.
    pub uncounted: Counter,
    /// Hosts replaced by others, with the loss of their counts.
    pub forgotten: Counter,
}

impl Default for HostView {
    fn default() -> HostView {
        HostView {
            cells: (0..HOSTS).map(|_| SeqCell::new()).collect(),
            uncounted: Counter::default(),
            forgotten: Counter::default(),
        }
    }
}

impl HostView {
    /// All hosts and their counts.
    pub fn hosts(&self) -> impl Iterator<Item = (IpAddr, Counts)> + '_ {
        self.cells.iter().filter_map(|cell| {
            let [meta, high, low, cnps_sent, cnps_passed, naks, rnr_naks, ce] = cell.read()?;
            let counts = Counts {
                cnps_sent,
                cnps_passed,
                naks,
                rnr_naks,
                ce,
            };
            let address = if meta & V6 == 0 {
                IpAddr::V4(Ipv4Addr::from(low32(low)))
            } else {
                IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
            };
            (meta & LIVE != 0).then_some((address, counts))
        })
    }
}

/// The control core's side of the host counters.
#[derive(Debug)]
pub(crate) struct Hosts {
    map: FixedMap<(Bits, bool), (Counts, Nanos)>,
}

impl Hosts {
    pub(crate) fn new(seed: u64) -> Hosts {
        Hosts {
            map: FixedMap::new(HOSTS, seed),
        }
    }

    /// Counts a record for the host it goes to.
    pub(crate) fn see(&mut self, record: &PacketSample, view: &HostView) {
        let ce = record.flags.has(SampleFlags::CE);
        let kind = record.syndrome.map_or(0, |syndrome| syndrome >> 5);
        let cnp = record.class == RoceClass::Cnp;
        if !(ce || cnp || matches!(kind, 1 | 3)) {
            return;
        }
        self.count(&record.key, record.time, view, |counts| {
            counts.ce += u64::from(ce);
            counts.cnps_passed += u64::from(cnp);
            counts.rnr_naks += u64::from(kind == 1);
            counts.naks += u64::from(kind == 3);
        });
    }

    /// Counts a CNP of ours to the sender of `flow`.
    pub(crate) fn record_cnp_sent(&mut self, flow: &FlowKey, now: Nanos, view: &HostView) {
        let to_sender = flow.reversed(flow.dest_qp());
        self.count(&to_sender, now, view, |counts| counts.cnps_sent += 1);
    }

    /// Place of the host's entry, made if need be.
    fn place(&mut self, host: (Bits, bool), now: Nanos, view: &HostView) -> Option<u32> {
        if let Some(known) = self.map.find(&host) {
            return Some(known);
        }
        if self.map.is_full() {
            let signalled = self.map.oldest(SIGNALLED);
            let old = |index: &u32| {
                let heard = self.map.get(*index).map(|(_, at)| *at);
                heard.is_some_and(|at| now.since(at) >= KEPT)
            };
            let oldest = self.map.oldest(HEARD).or_else(|| signalled.filter(old))?;
            self.map.remove(oldest);
            view.forgotten.add(1);
        }
        self.map.insert(host, (Counts::default(), now))
    }

    fn count(
        &mut self,
        key: &FlowKey,
        now: Nanos,
        view: &HostView,
        change: impl FnOnce(&mut Counts),
    ) {
        let host = (key.dst, key.is_ipv6());
        let Some(index) = self.place(host, now, view) else {
            view.uncounted.add(1);
            return;
        };
        let (Some((counts, at)), Some(cell)) =
            (self.map.get_mut(index), view.cells.get(index as usize))
        else {
            return;
        };
        change(counts);
        *at = now;
        let [high, low] = key.dst;
        let meta = LIVE | if key.is_ipv6() { V6 } else { 0 };
        let c = *counts;
        let list = if c.cnps_sent > 0 { SIGNALLED } else { HEARD };
        self.map.set_list(index, list);
        cell.write(&[
            meta,
            high,
            low,
            c.cnps_sent,
            c.cnps_passed,
            c.naks,
            c.rnr_naks,
            c.ce,
        ]);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use npcc_roce::key::Qpn;

    /// Flow of a sender.
    fn of(sender: u32) -> FlowKey {
        let sender = Ipv4Addr::from(0x0a00_0000 + sender);
        FlowKey::new(sender.into(), Ipv4Addr::LOCALHOST.into(), Qpn::new(2))
    }

    /// Regression: 4,096 made-up addresses closed the table until a restart.
    #[test]
    fn a_table_full_of_forged_hosts_admits_others_and_keeps_those_signalled() {
        let (mut hosts, view) = (Hosts::new(7), HostView::default());
        let heard = |hosts: &mut Hosts, host: u32, now: Nanos| {
            hosts.count(&of(host).reversed(Qpn::new(2)), now, &view, |counts| {
                counts.ce += 1;
            });
        };
        let known = |host: u32| {
            let address = of(host).src();
            view.hosts().any(|(known, _)| known == address)
        };
        hosts.record_cnp_sent(&of(1), Nanos(1), &view);
        for host in 2..=10_000 {
            heard(&mut hosts, host, Nanos(2));
        }
        assert!(known(1) && known(10_000) && !known(2));
        assert_eq!(view.hosts().count(), HOSTS);
        assert_eq!(view.forgotten.get(), 10_000 - HOSTS as u64);
        // All are signalled: the first of them goes after a minute.
        for host in 20_000..30_000 {
            hosts.record_cnp_sent(&of(host), Nanos(3), &view);
        }
        let uncounted = view.uncounted.get();
        assert!(known(1) && known(20_000) && uncounted > 0);
        heard(&mut hosts, 5, KEPT + Nanos(3));
        assert!(known(5) && !known(1));
        assert_eq!(view.uncounted.get(), uncounted);
    }
}
