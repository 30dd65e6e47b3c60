//! Fair shares of a table that anybody can fill with made-up entries, counted by ingress port and by source at it.
//!
//! Law: while a table is full, a newcomer takes the entry of a port that holds more than its own, or, at its own port, of a source that
//! holds more. So each port comes to an equal part if it wants one, and at it each source; a part that is not used is available to the others.

use npcc_pipeline::units::{MAX_PORTS, PortId};

use crate::key::{FlowKey, KeyHasher};

/// Number of sources counted separately; sources that hash to one place share a count.
const SOURCES: usize = 4_096;
/// Number of entries, from the oldest, among which a newcomer looks for one to replace.
pub const LOOKED_AT: usize = 8;

/// Port and source whose packets made an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    source: u16,
    port: u8,
}

impl Holder {
    /// Holder of an entry that packets of no port made.
    pub const NOBODY: Holder = Holder {
        source: u16::MAX,
        port: u8::MAX,
    };
}

/// Counts of entries by holder: see the module's text.
#[derive(Debug)]
pub struct Holdings {
    by_port: [u32; MAX_PORTS],
    by_source: Box<[u32]>,
    hasher: KeyHasher,
}

impl Holdings {
    /// Makes counts of zero; `seed` keys the hash of sources.
    pub fn new(seed: u64) -> Holdings {
        Holdings {
            by_port: [0; MAX_PORTS],
            by_source: vec![0; SOURCES].into_boxed_slice(),
            hasher: KeyHasher::new(seed),
        }
    }

    /// Holder of a packet with this key that came in by `ingress`.
    pub fn holder(&self, key: &FlowKey, ingress: PortId) -> Holder {
        let source = self.hasher.source(key, ingress, SOURCES);
        Holder {
            source: u16::try_from(source).unwrap_or(u16::MAX),
            port: ingress.0,
        }
    }

    /// Adds one to a holder's count of entries if `more`, else takes one off.
    pub fn count(&mut self, holder: Holder, more: bool) {
        let step = if more { 1 } else { -1 };
        let port = self.by_port.get_mut(usize::from(holder.port));
        let source = self.by_source.get_mut(usize::from(holder.source));
        for count in port.into_iter().chain(source) {
            *count = count.saturating_add_signed(step);
        }
    }

    /// Returns true if a newcomer may take an entry of `holder`, because `holder`'s port has more entries than the newcomer's, or at the same port
    /// its source has.
    pub fn makes_room(&self, holder: Holder, newcomer: Holder) -> bool {
        let port = |of: Holder| self.by_port.get(usize::from(of.port)).copied();
        let source = |of: Holder| self.by_source.get(usize::from(of.source)).copied();
        if holder.port == newcomer.port {
            source(holder) > source(newcomer)
        } else {
            port(holder) > port(newcomer)
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::key::Qpn;

    proptest! {
        /// Law: the order of newcomers at a full table does not change its parts in the end: ports have equal ones, and sources at a port,
        /// as far as they want them.
        #[test]
        fn parts_become_equal(order in prop::collection::vec((0u8..3, 0u8..3), 4_000..6_000)) {
            const ROOM: usize = 90;
            let mut holdings = Holdings::new(7);
            let mut table: VecDeque<Holder> = VecDeque::new();
            let holder = |holdings: &Holdings, (port, source): (u8, u8)| {
                let key = FlowKey::new([10, 0, port, source].into(), [10, 9, 0, 1].into(), Qpn::new(1));
                holdings.holder(&key, PortId(port))
            };
            for who in order {
                let newcomer = holder(&holdings, who);
                if table.len() == ROOM {
                    let mut oldest = 0..LOOKED_AT;
                    let Some(old) = oldest.find(|at| holdings.makes_room(table[*at], newcomer)) else {
                        table.rotate_left(LOOKED_AT);
                        continue;
                    };
                    let old = table.remove(old).unwrap();
                    holdings.count(old, false);
                }
                holdings.count(newcomer, true);
                table.push_back(newcomer);
            }
            for port in 0..3 {
                let at_port = |one: &&Holder| one.port == port;
                let held = table.iter().filter(at_port).count();
                prop_assert!(held.abs_diff(ROOM / 3) <= 6, "{held} of port {port}");
            }
        }
    }

    #[test]
    fn a_flood_makes_room_for_the_first_of_another_and_not_the_other_way_round() {
        let mut holdings = Holdings::new(7);
        let key = |source| FlowKey::new(source, [10, 9, 0, 1].into(), Qpn::new(1));
        let loud = holdings.holder(&key([10, 0, 0, 1].into()), PortId(0));
        let neighbour = holdings.holder(&key([10, 0, 0, 2].into()), PortId(0));
        let elsewhere = holdings.holder(&key([10, 0, 0, 1].into()), PortId(1));
        for _ in 0..100 {
            holdings.count(loud, true);
        }
        for quiet in [neighbour, elsewhere] {
            assert!(holdings.makes_room(loud, quiet) && !holdings.makes_room(quiet, loud));
        }
        assert!(!holdings.makes_room(loud, loud));
    }
}
