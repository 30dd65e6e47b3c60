//! Rights of the management sockets' clients.

use npcc_api::operations::Right;

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

impl Access {
    /// Returns the configuration key that names this socket.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Access::ReadWrite => "telemetry.socket",
            Access::Report | Access::ReadOnly => "telemetry.read_only_socket",
        }
    }

    /// Returns true if a client with these rights may use operations that need `right`.
    #[must_use]
    pub fn may(self, right: Right) -> bool {
        match (self, right) {
            (Access::ReadWrite, _) | (_, Right::Read) | (Access::Report, Right::Report) => true,
            (Access::Report | Access::ReadOnly, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use npcc_api::operations::OPERATIONS;

    use super::*;

    #[test]
    fn reporters_read_and_report_and_change_nothing() {
        for one in OPERATIONS {
            let may = [Access::ReadWrite, Access::Report, Access::ReadOnly]
                .map(|access| access.may(one.right));
            let expected = match one.name {
                "suggest" => [true, true, false],
                _ => [true, one.right == Right::Read, one.right == Right::Read],
            };
            assert_eq!(may, expected, "{}", one.name);
        }
    }
}
