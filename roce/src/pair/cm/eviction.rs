//! Replacement in the table of connections when it is full.

use npcc_pipeline::units::Nanos;

use super::connection::Connection;
use super::{CmTable, GRANTED, REQUESTED};
use crate::holdings::{Holder, LOOKED_AT};
use crate::key::FlowKey;
use crate::pair::bindings::BindingSource;
use crate::pair::endpoints::Activity;

/// Time after which a REQ not granted may make room for others.
const UNANSWERED: Nanos = Nanos::from_millis(10_000);

impl CmTable {
    /// Makes room for a connection that is requested. Those not granted make room for each other: the oldest of a port or source that
    /// [holds no less](crate::holdings) than the newcomer's. A granted one does so only if neither of its queue pairs is in use.
    pub(super) fn make_room(
        &mut self,
        newcomer: Holder,
        now: Nanos,
        activity: &impl Fn(&FlowKey) -> Activity,
    ) -> bool {
        let crowded = self.connections.len_of(REQUESTED) >= self.most_requested;
        if !crowded && !self.connections.is_full() {
            return true;
        }
        let is_stale = |requested: &Connection| now.since(requested.at) >= UNANSWERED;
        let makes_room =
            |requested: &Connection| !self.requested.makes_room(newcomer, requested.holder);
        let find = |test: &dyn Fn(&Connection) -> bool| {
            let mut oldest = self.connections.by_age(REQUESTED).take(LOOKED_AT);
            oldest.find(|index| self.connections.get(*index).is_some_and(test))
        };
        let stale = find(&|requested| is_stale(requested) || crowded && makes_room(requested));
        let last = find(&makes_room);
        let room = stale.or_else(|| self.idle(activity)).or(last);
        let Some(id) = room.and_then(|index| self.connections.key(index)) else {
            // Moved back, so that the next newcomer looks at others.
            self.connections.rotate(REQUESTED, LOOKED_AT);
            return false;
        };
        self.close(id, None);
        self.displaced += 1;
        true
    }

    /// Finds a granted connection none of whose queue pairs is in use, among those longest not looked at. A pair that an operator gave, in person or
    /// by a list, is his to take back.
    fn idle(&mut self, activity: &impl Fn(&FlowKey) -> Activity) -> Option<u32> {
        for _ in 0..LOOKED_AT {
            let index = self.connections.oldest(GRANTED)?;
            let id = self.connections.key(index)?;
            let known = self.connections.get(index)?;
            let is_of_cm = matches!(known.source, BindingSource::Cm(_));
            let is_silent = |key: FlowKey| activity(&key) == Activity::Silent;
            if is_of_cm && known.endpoints(&id).all(is_silent) {
                return Some(index);
            }
            self.connections.touch(index);
        }
        None
    }
}
