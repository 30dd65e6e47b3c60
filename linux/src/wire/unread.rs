//! Reasons why a message is not read.

/// Reason why a message is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The message does not concern the switch: another kind, family or table.
    NotOurs,
    /// The message concerns the switch, but lacks an indispensable attribute.
    Malformed,
}
