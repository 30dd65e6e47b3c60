//! Order of CNPs: an operator names sender, receiver and queue pair.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most CNPs of one order.
pub const MOST: u32 = 1_000;

/// Order of CNPs, as it goes over the management socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CnpOrder {
    /// Address of the host that is to slow down: the CNPs' destination.
    pub to: IpAddr,
    /// Address of the other end of the connection: the CNPs' source.
    pub from: IpAddr,
    /// Queue pair at `to`.
    pub queue_pair: u32,
    /// Number of CNPs, 1 to [`MOST`].
    pub count: u32,
}

impl CnpOrder {
    /// Returns its name for the log of changes.
    #[must_use]
    pub fn name(&self) -> String {
        let CnpOrder {
            to,
            from,
            queue_pair,
            count,
        } = self;
        format!("cnp send --to {to} --from {from} --qp {queue_pair:#x} --count {count}")
    }
}
