//! Alternate paths: a LAP proposes one, and the APR of the other side accepts or rejects it.

use super::connection::{AlternatePath, Connection};
use super::{Change, CmTable};
use crate::key::FlowKey;
use crate::pair::bindings::{ConnectionId, Owner};
use crate::pair::endpoints::Activity;

impl CmTable {
    /// Connection between these ids, if it was granted and nothing speaks against it.
    fn granted(&mut self, id: ConnectionId, passive: u32) -> Option<&mut Connection> {
        let index = self.connections.find(&id)?;
        let known = self.connections.get_mut(index)?;
        let fits = known.passive.is_some_and(|(_, granted)| granted == passive);
        (fits && !known.disputed).then_some(known)
    }

    /// Records a proposed alternate path; one in use stays until the new one is accepted.
    pub(super) fn propose(&mut self, id: ConnectionId, passive: u32, path: AlternatePath) {
        if let Some(known) = self.granted(id, passive)
            && known.alternate.is_none_or(|alternate| !alternate.accepted)
        {
            known.alternate = Some(path);
        }
    }

    /// Applies the answer (APR) to an alternate path, of the side that did not propose it.
    pub(super) fn apply_apr(
        &mut self,
        id: ConnectionId,
        passive: u32,
        (by_active, accepted): (bool, bool),
        activity: &impl Fn(&FlowKey) -> Activity,
    ) -> Change {
        let Some(known) = self.granted(id, passive) else {
            return Change::Nothing;
        };
        let Some(alternate) = known.alternate.as_mut() else {
            return Change::Nothing;
        };
        if alternate.by_active != by_active || alternate.accepted {
            return Change::Nothing;
        }
        if !accepted {
            known.alternate = None;
            return Change::Nothing;
        }
        alternate.accepted = true;
        let (alternate, connection) = (*alternate, *known);
        let Some((qpn, _)) = connection.passive else {
            return Change::Nothing;
        };
        let to_passive = alternate.path.with_qp(qpn);
        // Whatever connection has these queue pairs at these addresses keeps them: a made-up path takes nothing from anybody.
        let taken = |key: &FlowKey| {
            self.bindings.owner(&Owner::destination(key)).is_some()
                || activity(key) == Activity::Active
        };
        if taken(&to_passive) || taken(&to_passive.reversed(connection.active_qpn)) {
            self.contradicted += 1;
            return Change::Nothing;
        }
        self.pair(id, to_passive, alternate.flow_label)
    }
}
