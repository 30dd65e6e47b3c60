//! Rights of the management sockets' clients.

use npcc_api::protocol::Request;

/// Group whose processes may report what other boxes and hosts saw, on the read-only socket: that of npcc-feed, which reads a network and may
/// therefore not change the switch.
pub const REPORTERS: &str = "npcc-feed";

/// Rights of a client, by its socket and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, and change what runs.
    ReadWrite,
    /// Read, and report ends of queue pairs, which packets must confirm.
    Report,
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
            Access::Report | Access::ReadOnly => "telemetry.read_only_socket",
        }
    }

    /// Returns true if a client with these rights may make a request.
    #[must_use]
    pub const fn may(self, request: &Request) -> bool {
        match self {
            Access::ReadWrite => true,
            Access::Report => request.reads() || request.reports(),
            Access::ReadOnly => request.reads(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reporters_read_and_report_and_change_nothing() {
        let may = |request: &Request| {
            [Access::ReadWrite, Access::Report, Access::ReadOnly].map(|access| access.may(request))
        };
        assert_eq!(may(&Request::Snapshot), [true; 3]);
        assert_eq!(may(&Request::SuggestAll(Vec::new())), [true, true, false]);
        for changes in [
            Request::Stop,
            Request::ClearCounters,
            Request::Pairs {
                pairs: Vec::new(),
                suggested: true,
            },
        ] {
            assert_eq!(may(&changes), [true, false, false], "{}", changes.name());
        }
    }
}
