//! Rights of a socket's clients.

/// Rights of a socket's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, and change what runs.
    Change,
    /// Read only.
    Read,
}

/// Slot of a client among those served at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Slot for any request.
    Any,
    /// The last slot, kept for a change: other clients, however slow, cannot lock an operator out.
    Change,
}

impl Access {
    /// Returns the configuration key that names this socket.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Access::Change => "telemetry.socket",
            Access::Read => "telemetry.read_only_socket",
        }
    }
}
