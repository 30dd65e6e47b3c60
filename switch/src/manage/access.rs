//! What a socket lets its clients do.

/// What a socket's clients may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look, and change what runs.
    Change,
    /// Look.
    Read,
}

/// A client's place among those that are served at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// For whatever it asks.
    Any,
    /// The last one, kept for a change: others that hold on keep no operator from it.
    Change,
}

impl Access {
    /// The key of the configuration that names its socket.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Access::Change => "telemetry.socket",
            Access::Read => "telemetry.read_only_socket",
        }
    }
}
