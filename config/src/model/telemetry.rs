//! `telemetry:` management sockets, metrics and the web page.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::units::UnitError;

/// Management socket of a switch whose configuration names no other.
pub const DEFAULT_SOCKET: &str = "/run/npcc-switch.sock";

npcc_pipeline::defaults! {
    /// Management sockets, metrics and the web page.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Telemetry {
        /// Path of the Unix socket on which the switch accepts commands.
        pub socket: String = DEFAULT_SOCKET.to_owned(),
        /// Group that may use the management socket.
        pub group: String = "npcc".to_owned(),
        /// Path of the read-only Unix socket, which answers `show` only; default: beside `socket`, with `-ro` before `.sock`.
        pub read_only_socket: Option<String> = None,
        /// Group that may use the read-only socket.
        pub read_only_group: String = "npcc-ro".to_owned(),
        /// Address and port of the HTTP server for metrics (`/metrics`) and the web page (`/`), read-only and without a password;
        /// default: none.
        #[serde(deserialize_with = "listener")]
        #[schemars(with = "Option<String>")]
        pub http: Option<SocketAddr> = None,
        /// Additional host names that HTTP requests may use, such as the target's in Prometheus; addresses and `localhost` are always accepted. A
        /// request for any other name is refused, so that no foreign page can read the metrics through a visitor's browser (DNS rebinding).
        pub http_hosts: Vec<String> = Vec::new(),
    }
}

impl Telemetry {
    /// Returns the path of the read-only socket, as configured or derived from `socket`.
    #[must_use]
    pub fn read_only_path(&self) -> String {
        let own = self.read_only_socket.clone();
        own.unwrap_or_else(|| read_only_beside(&self.socket))
    }
}

/// Returns the path of the read-only socket beside the management socket: `/run/a-ro.sock` for `/run/a.sock`.
#[must_use]
pub fn read_only_beside(socket: &str) -> String {
    match socket.strip_suffix(".sock") {
        Some(stem) => format!("{stem}-ro.sock"),
        None => format!("{socket}-ro"),
    }
}

fn listener<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SocketAddr>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let accepted = "write an address and a port, such as 127.0.0.1:9464";
        de::Error::custom(UnitError::not(text, "an address with a port", accepted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_read_only_socket_lies_beside_the_other_unless_named() {
        let mut telemetry = Telemetry::default();
        assert_eq!(telemetry.read_only_path(), "/run/npcc-switch-ro.sock");
        telemetry.socket = "/run/npcc".to_owned();
        assert_eq!(telemetry.read_only_path(), "/run/npcc-ro");
        telemetry.read_only_socket = Some("/run/watch.sock".to_owned());
        assert_eq!(telemetry.read_only_path(), "/run/watch.sock");
    }
}
