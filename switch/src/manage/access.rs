//! What a socket lets its clients do.

/// What a socket's clients may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look, and change what runs.
    Change,
    /// Look.
    Read,
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
