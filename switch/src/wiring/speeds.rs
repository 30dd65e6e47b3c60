//! Speeds of a port: the link's, from which quanta and headroom are computed, and the shaper's, which thresholds follow.

use npcc_config::resolved;
use npcc_config::sizing::{SpeedFrom, link_speed};
use npcc_pipeline::units::BitRate;

/// Speeds of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speeds {
    /// Speed of the link.
    pub link: BitRate,
    /// Source of the link speed.
    pub from: LinkFrom,
    /// Shaper rate of the egress side; `None` for a virtual device without `speed`.
    pub shaper: Option<BitRate>,
}

impl Speeds {
    /// Returns the device's link speed in Mb/s, if the device is the source of the speed.
    #[must_use]
    pub fn reported_mbps(&self) -> Option<u32> {
        let mbps = u32::try_from(self.link.0 / 1_000_000).ok();
        mbps.filter(|_| self.from == LinkFrom::Device)
    }
}

/// Source of a link speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFrom {
    /// The device reports it.
    Device,
    /// The configuration sets it, or it is assumed.
    Configured(SpeedFrom),
}

impl LinkFrom {
    /// Returns the operator's word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LinkFrom::Device => "device",
            LinkFrom::Configured(from) => from.name(),
        }
    }
}

/// Returns the speeds of a port whose device reports a link of `live` Mb/s, if it knows. The report of a virtual device is ignored. A
/// physical port is always shaped: to `speed`, or without it a little below its link, so that frames queue here and not in the device's ring.
#[must_use]
pub fn of(port: &resolved::Port, live: Option<u32>) -> Speeds {
    let physical = !port.device.is_virtual();
    let (configured, from) = link_speed(Some(&port.device), (port.link_speed, port.speed));
    let live = live.filter(|_| physical && port.link_speed.is_none());
    let (link, from) = match live {
        Some(mbps) => (BitRate(u64::from(mbps) * 1_000_000), LinkFrom::Device),
        None => (configured, LinkFrom::Configured(from)),
    };
    let below_the_link = physical.then_some(BitRate(link.0 / 1_000 * 999));
    let shaper = port.speed.or(below_the_link);
    Speeds { link, from, shaper }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(text: &str) -> resolved::Port {
        let text = format!("version: 1\nports:\n  - {{ name: a, device: {text} }}\n");
        let loaded = npcc_config::parse("t.yaml", &text).unwrap();
        loaded.config.ports.into_iter().next().unwrap()
    }

    const GIG: u64 = 1_000_000_000;

    /// Earlier defect: a port of 100G that was shaped to 40G computed quanta and headroom for 40G.
    #[test]
    fn the_shaper_is_not_the_link() {
        let speeds = of(&port("'0000:3b:00.0', speed: 40G"), Some(100_000));
        assert_eq!(
            (speeds.link, speeds.from),
            (BitRate(100 * GIG), LinkFrom::Device)
        );
        assert_eq!(speeds.shaper, Some(BitRate(40 * GIG)));
        let written = of(&port("net_tap0, speed: 1G, link_speed: 25G"), Some(10_000));
        assert_eq!(
            (written.link.0, written.from.name()),
            (25 * GIG, "link_speed")
        );
        let stated = of(&port("'0000:3b:00.0', link_speed: 25G"), Some(100_000));
        assert_eq!(
            (stated.link.0, stated.from.name()),
            (25 * GIG, "link_speed"),
            "whatever the device tells"
        );
        let vdev = of(&port("net_tap0, speed: 1G"), Some(10_000));
        assert_eq!((vdev.link.0, vdev.from.name()), (GIG, "speed"));
    }

    /// Earlier defect: a physical port whose link was down at the start had no shaper, no ECN and no alarm for ever.
    #[test]
    fn a_physical_port_is_always_shaped() {
        for live in [None, Some(25_000)] {
            let speeds = of(&port("'0000:3b:00.0'"), live);
            let gig = live.map_or(100, |mbps| u64::from(mbps) / 1_000);
            assert_eq!(speeds.link.0, gig * GIG);
            assert_eq!(speeds.shaper, Some(BitRate(gig * 999_000_000)));
        }
        assert_eq!(of(&port("'0000:3b:00.0'"), None).from.name(), "assumed");
        assert_eq!(of(&port("net_tap0"), Some(10_000)).shaper, None);
    }
}
