//! `telemetry:` management socket and metrics.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::units::UnitError;

/// Management socket and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Unix socket on which the switch answers its commands.
    pub socket: String,
    /// Group that may use it.
    pub group: String,
    /// Address and port on which metrics are served.
    #[serde(deserialize_with = "listener")]
    #[schemars(with = "Option<String>")]
    pub prometheus: Option<SocketAddr>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            socket: "/run/npcc-switch.sock".to_owned(),
            group: "npcc".to_owned(),
            prometheus: None,
        }
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
