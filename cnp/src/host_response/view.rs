//! View of hosts' responsiveness, for readers on other threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{HOSTS, HostState, Responsiveness};
use crate::key::{Bits, low32};
use crate::response::Unmeasured;
use crate::seqlock::SeqCell;

const WORDS: usize = 7;
const LIVE: u64 = 1;
const V6: u64 = 2;

/// Responsiveness of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostResponse {
    /// Address of the host.
    pub address: IpAddr,
    /// Responsiveness class of the host.
    pub responsiveness: Responsiveness,
    /// Natural logarithm of its odds of responding, in thousandths.
    pub odds: i32,
    /// Number of measurements that spoke for it: its flow slowed down and stayed slow.
    pub worked: u32,
    /// Number of measurements that spoke against it.
    pub ineffective: u32,
    /// Number of failed measurements, by [`Unmeasured`].
    pub unmeasured: [u32; Unmeasured::COUNT],
}

/// The readers' side of the table of hosts' responsiveness.
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
    /// All hosts with a measurement, or listed by the operator as answering.
    pub fn hosts(&self) -> impl Iterator<Item = HostResponse> + '_ {
        self.cells.iter().filter_map(|cell| {
            let [meta, high, low, counts, a, b, c] = cell.read()?;
            let address = if meta & V6 == 0 {
                IpAddr::V4(Ipv4Addr::from(low32(low)))
            } else {
                IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)))
            };
            let responsiveness = usize::try_from(meta >> 8 & 0xff).ok()?;
            (meta & LIVE != 0).then(|| HostResponse {
                address,
                responsiveness: Responsiveness::from_index(responsiveness).unwrap_or_default(),
                worked: low32(counts),
                ineffective: low32(counts >> 32),
                odds: low32(c >> 32).cast_signed(),
                unmeasured: [a, a >> 32, b, b >> 32, c].map(low32),
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
        let responsiveness = (state.responsiveness().index() as u64) << 8;
        let meta = LIVE | if ipv6 { V6 } else { 0 } | responsiveness;
        let counts = u64::from(state.worked) | u64::from(state.ineffective) << 32;
        let [a, b, c, d, e] = state.unmeasured.map(u64::from);
        let odds = u64::from(state.odds().cast_unsigned());
        let unmeasured = [a | b << 32, c | d << 32, e | odds << 32];
        let [first, second, third] = unmeasured;
        cell.write(&[meta, high, low, counts, first, second, third]);
    }
}
