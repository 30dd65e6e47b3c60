//! `agent.yaml`: the settings of `npcc-agent`.

use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

use npcc_config::Report;
use npcc_config::document::{self, Document, Findings};
use npcc_config::units::Nanos;
use serde::Deserialize;

use crate::name::Name;
use crate::settings::{Bus, check_bus};

/// Settings of a host's agent: the whole file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// Site of the boxes that the host's traffic passes first.
    pub site: Name,
    /// Name of the host.
    pub host: Name,
    /// Servers of the bus, and how this host is known to them.
    pub bus: Bus,
    /// Time between two polls of the kernel, 10ms to 10s.
    #[serde(default = "hundred_ms")]
    pub poll: Nanos,
    /// Time for which a lease lasts unless it is renewed, 1s to 60s.
    #[serde(default = "three_s")]
    pub lease: Nanos,
    /// UDP source port of all queue pairs of the host, 1 to 65535, where they have one; unset: the hash of both queue pairs.
    #[serde(default)]
    pub udp_port: Option<NonZeroU16>,
}

const fn hundred_ms() -> Nanos {
    Nanos(100_000_000)
}

const fn three_s() -> Nanos {
    Nanos(3_000_000_000)
}

impl AgentSettings {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file; a secret that others may read is among it.
    pub fn load(path: &Path) -> Result<Document<AgentSettings>, Report> {
        document::load(path, "bus", check)
    }

    /// Returns the time between two polls.
    #[must_use]
    pub const fn poll_time(&self) -> Duration {
        Duration::from_nanos(self.poll.0)
    }

    /// Returns the time for which a lease lasts.
    #[must_use]
    pub const fn lease_time(&self) -> Duration {
        Duration::from_nanos(self.lease.0)
    }

    /// Returns the subject of the host's leases.
    #[must_use]
    pub fn subject(&self) -> String {
        format!("npcc.{}.host.{}.leases", self.site, self.host)
    }
}

fn check(settings: &AgentSettings, found: &mut Findings<'_>) {
    check_bus(&settings.bus, found);
    let ms = |time: Nanos| time.0 / 1_000_000;
    if !(10..=10_000).contains(&ms(settings.poll)) {
        let message = format!("a poll every {} is out of range", settings.poll);
        found.error("poll", message, "write 10ms to 10s");
    }
    if !(1000..=60_000).contains(&ms(settings.lease)) {
        let message = format!("a lease of {} is out of range", settings.lease);
        found.error("lease", message, "write 1s to 60s");
    } else if settings.lease.0 < 6 * settings.poll.0 {
        let hint = "a lease is renewed after a third of its time: make poll shorter";
        found.error(
            "lease",
            "a lease of less than six polls ends before it is renewed",
            hint,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_out_of_range_are_refused() {
        let text = "site: dc1\nhost: gpu-7\nbus: { servers: [nats://a] }\npoll: 5ms\nlease: 70s\n";
        let said = document::parse("agent.yaml", text, check)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("4:7: error: a poll every 5ms is out of range"),
            "{said}"
        );
        assert!(
            said.contains("5:8: error: a lease of 70s is out of range"),
            "{said}"
        );
        let text = text.replace("5ms", "1s").replace("70s", "5s");
        let said = document::parse("agent.yaml", &text, check)
            .unwrap_err()
            .to_string();
        assert!(said.contains("less than six polls"), "{said}");
        let text = text.replace("5s", "6s");
        let read = document::parse("agent.yaml", &text, check).unwrap().model;
        assert_eq!(read.udp_port, None);
        assert_eq!(read.subject(), "npcc.dc1.host.gpu-7.leases");
        assert_eq!(read.lease_time(), Duration::from_secs(6));
    }
}
