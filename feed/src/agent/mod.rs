//! `npcc-agent`: queue pairs of a host, for the boxes that its traffic passes first.
//!
//! A box learns a sender's queue pair from the first answer that passes it, which is late on a long path. The host knows the number from the start.
//! The agent polls the kernel's RDMA resources by netlink, and publishes each connected queue pair with its partner as a *lease*, which ends
//! by itself when it is not renewed. A box believes a lease only once the host's own packets fit it.

mod leases;
mod messages;
mod run;
mod settings;
mod socket;
pub mod wire;

pub use leases::{Addresses, Leases};
pub use messages::LeaseMessage;
pub use run::{AgentError, run, show};
pub use settings::AgentSettings;
