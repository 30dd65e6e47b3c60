//! Counts per host: CNPs in and out, NAK, RNR, CE. A table of fixed size; hosts beyond it are not counted, and that is.
//!
//! CNPs sent are exact; CNPs passed and NAKs are those at least 4 us apart per flow; CE is of sampled packets only (ports
//! count all of them).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_pipeline::counters::Counter;

use crate::fixed_map::FixedMap;
use crate::key::{Bits, FlowKey, low32};
use crate::sample::{Record, RecordFlags};
use crate::seqlock::SeqCell;
use npcc_pipeline::wire::bth::RoceClass;

/// Hosts counted.
const HOSTS: usize = 4_096;
const WORDS: usize = 8;
const LIVE: u64 = 1;
const V6: u64 = 2;

/// One host's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// CNPs it was sent by us.
    pub cnps_sent: u64,
    /// CNPs of receivers to it that passed.
    pub cnps_passed: u64,
    /// NAKs it was sent: lost or bad packets.
    pub naks: u64,
    /// Receiver-not-ready NAKs it was sent.
    pub rnr_naks: u64,
    /// Sampled packets to it that came marked CE.
    pub ce: u64,
}

/// The readers' side.
#[derive(Debug)]
pub struct HostView {
    cells: Box<[SeqCell<WORDS>]>,
    /// Packets of hosts that found no room.
    pub uncounted: Counter,
}

impl Default for HostView {
    fn default() -> HostView {
        HostView {
            cells: (0..HOSTS).map(|_| SeqCell::new()).collect(),
            uncounted: Counter::default(),
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

/// The control core's side.
#[derive(Debug)]
pub(crate) struct Hosts {
    map: FixedMap<(Bits, bool), Counts>,
}

impl Hosts {
    pub(crate) fn new(seed: u64) -> Hosts {
        Hosts {
            map: FixedMap::new(HOSTS, seed),
        }
    }

    /// Counts what a record says of the host it goes to.
    pub(crate) fn see(&mut self, record: &Record, view: &HostView) {
        let ce = record.flags.has(RecordFlags::CE);
        let kind = record.syndrome.map_or(0, |syndrome| syndrome >> 5);
        let cnp = record.class == RoceClass::Cnp;
        if !(ce || cnp || matches!(kind, 1 | 3)) {
            return;
        }
        self.count(&record.key, view, |counts| {
            counts.ce += u64::from(ce);
            counts.cnps_passed += u64::from(cnp);
            counts.rnr_naks += u64::from(kind == 1);
            counts.naks += u64::from(kind == 3);
        });
    }

    /// Counts a CNP of ours to the sender of `flow`.
    pub(crate) fn record_cnp_sent(&mut self, flow: &FlowKey, view: &HostView) {
        let to_sender = flow.reversed(flow.dest_qp());
        self.count(&to_sender, view, |counts| counts.cnps_sent += 1);
    }

    fn count(&mut self, key: &FlowKey, view: &HostView, change: impl FnOnce(&mut Counts)) {
        let host = (key.dst, key.is_ipv6());
        let found = self.map.find(&host);
        let Some(index) = found.or_else(|| self.map.insert(host, Counts::default())) else {
            view.uncounted.add(1);
            return;
        };
        let (Some(counts), Some(cell)) = (self.map.get_mut(index), view.cells.get(index as usize))
        else {
            return;
        };
        change(counts);
        let [high, low] = key.dst;
        let meta = LIVE | if key.is_ipv6() { V6 } else { 0 };
        let c = *counts;
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
