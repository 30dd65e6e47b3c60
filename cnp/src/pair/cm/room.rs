//! Who gives way in the table of connections when it is full.

use npcc_pipeline::units::Nanos;

use super::{ASKED, CmTable, GRANTED};
use crate::key::{FlowKey, Qpn};
use crate::pair::ends::Life;
use crate::pair::names::Said;

/// A REQ not granted within this time may make room for others.
const UNANSWERED: Nanos = Nanos::from_millis(10_000);
/// Granted connections looked at for one that is not in use, when there is no room.
const LOOKED_AT: usize = 8;

impl CmTable {
    /// Makes room for one that is asked for. Those not granted give way to each other, and a granted one only when neither of
    /// its queue pairs is in use.
    pub(super) fn make_room(&mut self, now: Nanos, life: &impl Fn(&FlowKey) -> Life) -> bool {
        let oldest = self.connections.oldest(ASKED);
        let crowded = self.connections.len_of(ASKED) >= self.most_asked;
        if !crowded && !self.connections.is_full() {
            return true;
        }
        let stale = oldest.filter(|index| {
            let asked = self.connections.get(*index);
            crowded || asked.is_some_and(|asked| now.since(asked.at) >= UNANSWERED)
        });
        let room = stale.or_else(|| self.idle(life)).or(oldest);
        let Some(id) = room.and_then(|index| self.connections.key(index)) else {
            return false;
        };
        self.end(id, None);
        true
    }

    /// A granted connection none of whose queue pairs is in use, of those longest not looked at. What an operator said, in person or by a
    /// list, is his to take back.
    fn idle(&mut self, life: &impl Fn(&FlowKey) -> Life) -> Option<u32> {
        for _ in 0..LOOKED_AT {
            let index = self.connections.oldest(GRANTED)?;
            let id = self.connections.key(index)?;
            let known = self.connections.get(index)?;
            let granter = known.granter.map_or_else(Qpn::default, |(qpn, _)| qpn);
            let ways = [Some(id.way), known.other.map(|other| other.way)];
            let ends = ways.into_iter().flatten();
            let mut ends = ends.flat_map(|way| [way.with_qp(granter), way.reversed(known.asker)]);
            let is_managers = matches!(known.said, Said::Manager(_));
            if is_managers && ends.all(|key| life(&key) == Life::Silent) {
                return Some(index);
            }
            self.connections.touch(index);
        }
        None
    }
}
