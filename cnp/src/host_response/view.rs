//! What is known of hosts, for readers on other threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cuts::{CutDepth, Cuts};
use super::{HOSTS, HostState, Standing};
use crate::key::{Bits, low32};
use crate::seqlock::SeqCell;

const WORDS: usize = 6;
const LIVE: u64 = 1;
const V6: u64 = 2;

/// One host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostResponse {
    /// Whose.
    pub address: IpAddr,
    /// What is believed of it.
    pub standing: Standing,
    /// Measurements in which its flow slowed down and stayed slow.
    pub worked: u32,
    /// Measurements in which it did not.
    pub vain: u32,
    /// How deep its cuts are.
    pub cuts: CutDepth,
}

/// The readers' side.
#[derive(Debug)]
pub struct HostResponseView {
    cells: Box<[SeqCell<WORDS>]>,
}

impl Default for HostResponseView {
    fn default() -> HostResponseView {
        HostResponseView {
            cells: (0..HOSTS).map(|_| SeqCell::new()).collect(),
        }
    }
}

impl HostResponseView {
    /// All hosts of which something was measured, or of which the operator says that they answer.
    pub fn hosts(&self) -> impl Iterator<Item = HostResponse> + '_ {
        self.cells.iter().filter_map(|cell| {
            let [meta, high, low, counts, first, second] = cell.read()?;
            let address = if meta & V6 == 0 {
                IpAddr::V4(Ipv4Addr::from(low32(low)))
            } else {
                IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
            };
            let standing = usize::try_from(meta >> 8).ok()?;
            (meta & LIVE != 0).then(|| HostResponse {
                address,
                standing: Standing::from_index(standing).unwrap_or_default(),
                worked: low32(counts),
                vain: low32(counts >> 32),
                cuts: Cuts::depths([first, second]),
            })
        })
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
        let standing = (state.standing().index() as u64) << 8;
        let meta = LIVE | if ipv6 { V6 } else { 0 } | standing;
        let counts = u64::from(state.worked) | u64::from(state.vain) << 32;
        let [first, second] = state.cuts.words();
        cell.write(&[meta, high, low, counts, first, second]);
    }
}
