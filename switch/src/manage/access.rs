//! Rights of a socket's clients.

/// Rights of a socket's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, and change what runs.
    ReadWrite,
    /// Read only.
    ReadOnly,
}

/// Slot of a client among those served at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientSlot {
    /// Slot for any request.
    Shared,
    /// The last slot, kept for a change: other clients, however slow, cannot lock an operator out.
    Reserved,
}

impl Access {
    /// Returns the configuration key that names this socket.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Access::ReadWrite => "telemetry.socket",
            Access::ReadOnly => "telemetry.read_only_socket",
        }
    }
}
