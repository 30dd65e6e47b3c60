//! The connection manager's messages, as they pass on QP1.

pub mod copy;
pub mod message;
