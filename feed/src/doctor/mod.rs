//! `npcc-feed doctor`: what is wrong with the bus, the servers and the switch's socket, and what mends it.
//!
//! It publishes under `npcc.SITE.BOX.doctor` and tries one subject of another box; nobody subscribes to either.

mod finding;
mod peers;
mod probe;
mod servers;

pub use finding::{Finding, Kind, Severity, text};

use npcc_api::client;
use npcc_api::protocol::Request;

use crate::settings::Settings;

/// Examines the bus and the switch of a box.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    servers::examine(settings, &mut found).await;
    if let Err(error) = client::ask(&settings.switch.socket, &Request::Snapshot).await {
        let mend = "start the switch, or name its telemetry.read_only_socket as switch.socket";
        let place = settings.switch.socket.display();
        found.push(Finding::new(Kind::SwitchSilent, place, error, mend));
    }
    found.sort_by_key(|finding| finding.severity);
    found
}
