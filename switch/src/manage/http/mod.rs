//! HTTP of the management sockets: connections, the places of their clients, and the router of all operations.
//!
//! All connections are served by one thread, which never waits for one of them: work that may wait or take long runs in a thread of its own
//! for as long as it lasts, and holds the place of its client until then.

pub(super) mod client;
pub(super) mod connection;
pub(super) mod lines;
pub(super) mod places;
pub(super) mod problem;
pub(super) mod router;
