//! Pairs that the operator or a list gives.

use npcc_pipeline::units::Nanos;

use super::connection::Connection;
use super::{Change, CmTable};
use crate::key::{FlowKey, Qpn};
use crate::pair::bindings::{Binding, BindingSource, ConnectionId, Owner};
use crate::pair::endpoints::Activity;

impl CmTable {
    /// Pairs two queue pairs known by other means, from the operator or a list; returns `false` if there is no room. The operator's
    /// word overrides what was known before, a list's does not.
    pub(crate) fn add_pair(
        &mut self,
        to_receiver: &FlowKey,
        sender: Qpn,
        source: BindingSource,
        now: Nanos,
        activity: &impl Fn(&FlowKey) -> Activity,
    ) -> bool {
        let both = [*to_receiver, to_receiver.reversed(sender)];
        let known = |key: &FlowKey| self.bindings.owner(&Owner::destination(key));
        let is_same = |(key, binding): (FlowKey, Binding)| {
            key == *to_receiver
                && binding.sender == sender
                && (binding.source != BindingSource::List || source == BindingSource::List)
        };
        let others = both
            .iter()
            .filter_map(known)
            .any(|(_, binding)| binding.source != BindingSource::List);
        if known(to_receiver).is_some_and(is_same) || source == BindingSource::List && others {
            return true;
        }
        let id = ConnectionId::given(to_receiver, sender);
        self.close(id, None);
        self.request(
            id,
            Connection::requested(sender, source, 0, now),
            now,
            activity,
        );
        let silent = |_: &FlowKey| Activity::Silent;
        matches!(
            self.grant(id, to_receiver.dest_qp(), 0, &silent),
            Change::Paired(..)
        )
    }

    /// Deletes the pair of this endpoint; returns `false` if there is none.
    pub(crate) fn delete_pair(&mut self, key: &FlowKey) -> bool {
        let Some(binding) = self.bindings.of(key) else {
            return false;
        };
        self.close(binding.id, None);
        true
    }
}
