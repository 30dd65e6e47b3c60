//! Why a message is not read.

/// Why a message is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is none of ours: another kind, family or table.
    NotOurs,
    /// It is one of ours, but lacks what it cannot do without.
    Malformed,
}
