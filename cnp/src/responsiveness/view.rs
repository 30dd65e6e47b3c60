//! View of hosts' responsiveness, for readers on other threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_pipeline::counters::Gauge;
use npcc_pipeline::units::Nanos;

use super::{HOSTS, HostState, Responsiveness, Unmeasured};
use crate::seqlock::SeqCell;
use npcc_roce::key::{Bits, low32};

const WORDS: usize = 8;
const LIVE: u64 = 1;
const V6: u64 = 2;

/// Responsiveness of one host, and its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostVerdict {
    /// Address of the host.
    pub address: IpAddr,
    /// Responsiveness of the host.
    pub responsiveness: Responsiveness,
    /// Number of trials that it passed: its flow slowed down to less than half.
    pub passed: u32,
    /// Number of trials that it failed.
    pub failed: u32,
    /// Time of the first failed trial since it passed one; zero if there was none.
    pub failing_since: Nanos,
    /// Number of trials without a result, by [`Unmeasured`].
    pub unmeasured: [u32; Unmeasured::COUNT],
}

/// The readers' side of the table of hosts' responsiveness.
#[derive(Debug)]
pub struct HostVerdictView {
    cells: Box<[SeqCell<WORDS>]>,
    /// Number of verdicts until now, and of those taken back.
    changes: Gauge,
}

impl Default for HostVerdictView {
    fn default() -> HostVerdictView {
        HostVerdictView {
            cells: (0..HOSTS).map(|_| SeqCell::new()).collect(),
            changes: Gauge::default(),
        }
    }
}

impl HostVerdictView {
    /// All hosts that had a trial, or are listed by the operator as answering.
    pub fn hosts(&self) -> impl Iterator<Item = HostVerdict> + '_ {
        self.cells.iter().filter_map(|cell| {
            let [meta, high, low, counts, since, a, b, c] = cell.read()?;
            let address = if meta & V6 == 0 {
                IpAddr::V4(Ipv4Addr::from(low32(low)))
            } else {
                IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
            };
            let responsiveness = usize::try_from(meta >> 8 & 0xff).ok()?;
            (meta & LIVE != 0).then(|| HostVerdict {
                address,
                responsiveness: Responsiveness::from_index(responsiveness).unwrap_or_default(),
                passed: low32(counts),
                failed: low32(counts >> 32),
                failing_since: Nanos(since),
                unmeasured: [a, a >> 32, b, b >> 32, c].map(low32),
            })
        })
    }

    /// Number of times that a host became unresponsive or ceased to be: what [`HostVerdictView::hosts`] says of hosts that are is the same as long as this is.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Records that a host became unresponsive or ceased to be; to be called once that is shown.
    pub(super) fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    pub(super) fn forget(&self, place: u32) {
        if let Some(cell) = self.cells.get(place as usize) {
            cell.write(&[0; WORDS]);
        }
    }

    pub(super) fn show(&self, place: u32, (address, ipv6): (Bits, bool), state: &HostState) {
        let Some(cell) = self.cells.get(place as usize) else {
            return;
        };
        let [high, low] = address;
        let responsiveness = (state.responsiveness().index() as u64) << 8;
        let meta = LIVE | if ipv6 { V6 } else { 0 } | responsiveness;
        let counts = u64::from(state.passed) | u64::from(state.ineffective) << 32;
        let since = if state.failed > 0 {
            state.failing_since.0
        } else {
            0
        };
        let [a, b, c, d, e] = state.unmeasured.map(u64::from);
        cell.write(&[meta, high, low, counts, since, a | b << 32, c | d << 32, e]);
    }
}
