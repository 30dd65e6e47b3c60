//! One connection of the [`CmTable`](super::CmTable).

use npcc_pipeline::units::Nanos;

use crate::holdings::Holder;
use crate::key::{FlowKey, Qpn};
use crate::pair::bindings::{BindingSource, ConnectionId};

/// Connection from its REQ on. The active side requests it, the passive side grants it (IBTA volume 1, 12.9).
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection {
    /// Queue pair of the active side.
    pub(super) active_qpn: Qpn,
    /// Queue pair and communication id of the passive side, once it granted the connection.
    pub(super) passive: Option<(Qpn, u32)>,
    pub(super) source: BindingSource,
    pub(super) flow_label: u32,
    /// Time of the REQ.
    pub(super) at: Nanos,
    /// True if granted twice, differently, or over a queue pair in use: it pairs nobody.
    pub(super) disputed: bool,
    /// Holder of the entry while it is not granted.
    pub(super) holder: Holder,
    /// Alternate path, if one was proposed.
    pub(super) alternate: Option<AlternatePath>,
}

impl Connection {
    pub(super) const fn requested(
        active_qpn: Qpn,
        source: BindingSource,
        flow_label: u32,
        now: Nanos,
    ) -> Connection {
        Connection {
            active_qpn,
            passive: None,
            source,
            flow_label,
            at: now,
            disputed: false,
            holder: Holder::NOBODY,
            alternate: None,
        }
    }

    /// Endpoints of the connection on all of its paths; the passive side's once it granted.
    pub(super) fn endpoints(&self, id: &ConnectionId) -> impl Iterator<Item = FlowKey> + use<> {
        let (active, passive) = (self.active_qpn, self.passive);
        let paths = [
            Some(id.path),
            self.alternate.map(|alternate| alternate.path),
        ];
        paths.into_iter().flatten().flat_map(move |path| {
            let to_passive = passive.map(|(qpn, _)| path.with_qp(qpn));
            [to_passive, Some(path.reversed(active))]
                .into_iter()
                .flatten()
        })
    }
}

/// Alternate path of a connection (LAP), in the direction of [`ConnectionId`].
#[derive(Debug, Clone, Copy)]
pub(super) struct AlternatePath {
    pub(super) path: FlowKey,
    pub(super) flow_label: u32,
    /// True if the active side proposed it.
    pub(super) by_active: bool,
    pub(super) accepted: bool,
}

impl AlternatePath {
    /// Path proposed by the active side.
    pub(super) const fn proposed(path: FlowKey, flow_label: u32) -> AlternatePath {
        AlternatePath {
            path,
            flow_label,
            by_active: true,
            accepted: false,
        }
    }

    /// The same path, if the passive side proposed it.
    pub(super) fn reversed(self) -> AlternatePath {
        AlternatePath {
            path: self.path.reversed(Qpn::default()),
            by_active: false,
            ..self
        }
    }
}
