//! `telemetry:` management sockets, metrics and the page.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::units::UnitError;

npcc_pipeline::defaults! {
    /// Management sockets, metrics and the page.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Telemetry {
        /// Unix socket on which the switch answers its commands.
        pub socket: String = "/run/npcc-switch.sock".to_owned(),
        /// Group that may use it.
        pub group: String = "npcc".to_owned(),
        /// Unix socket on which the switch answers `show` and changes nothing; absent: beside `socket`, with `-ro` before `.sock`.
        pub read_only_socket: Option<String> = None,
        /// Group that may use it.
        pub read_only_group: String = "npcc-ro".to_owned(),
        /// Address and port on which metrics (`/metrics`) and a page for people (`/`) are served over HTTP, for reading and without a
        /// password; absent: on none.
        #[serde(deserialize_with = "listener")]
        #[schemars(with = "Option<String>")]
        pub http: Option<SocketAddr> = None,
        /// Names by which it is asked for there, such as the target's in Prometheus; addresses and `localhost` always are. A request by any
        /// other is refused, so that no page from elsewhere reads it through the browser of whoever visits that.
        pub http_hosts: Vec<String> = Vec::new(),
    }
}

impl Telemetry {
    /// The socket that changes nothing, as configured or as it follows from `socket`.
    #[must_use]
    pub fn read_only_path(&self) -> String {
        let own = self.read_only_socket.clone();
        own.unwrap_or_else(|| read_only_beside(&self.socket))
    }
}

/// Names the socket that changes nothing after the one that may: `/run/a.sock` has `/run/a-ro.sock` beside it.
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
