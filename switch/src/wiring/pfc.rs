//! Who pauses whom: each port's flow control by its configuration and its driver, and the buffer's groups that go with it.

use npcc_config::model::{PortPfc, WatchdogAction};
use npcc_config::sizing::{Link, Lossless, RX_BURST, assumed_speed, sends_pause};
use npcc_config::units::Rate;
use npcc_config::{Config, plan};
use npcc_pipeline::buffer::{BufferConfig, GroupConfig};
use npcc_pipeline::datapath::LosslessConfig;
use npcc_pipeline::pause::{PauseConfig, StormAction, WatchdogConfig};
use npcc_pipeline::units::{BitRate, Nanos};

use super::ports::OpenPort;

/// Full receive bursts in a row that mean a ring of 1024 is over half full.
const PRESSURE: u16 = 16;

/// What is done about pause on a port, and why.
#[derive(Debug, Clone)]
pub struct PortFlow {
    /// `software` or `none`.
    pub backend: &'static str,
    /// Why.
    pub why: &'static str,
    /// Bit n: the peer is asked to pause priority n.
    pub send: u8,
    /// Bit n: the peer's pauses of priority n are obeyed.
    pub honour: u8,
    /// Speed by which quanta are reckoned.
    pub rate: BitRate,
    /// Headroom of each lossless priority in wire bytes; 0 without pause.
    pub headroom: u64,
    /// Reserve of each lossless priority in wire bytes.
    pub reserved: u64,
    /// How far below its threshold a sender goes on, in wire bytes.
    pub xon_offset: u64,
    /// Wire bytes of a burst of full frames: what may still be sent once a pause has arrived.
    pub hand: u64,
}

/// What a driver does to MAC control frames that the switch itself makes and reads.
fn driver(name: &str) -> Result<&'static str, &'static str> {
    let is = |part: &str| name.contains(part);
    if is("pcap") || is("null") {
        Err("a capture or null device has no peer")
    } else if is("i40e") {
        Err("the i40e driver drops pause frames that software sends")
    } else if is("mlx") {
        Err("mlx5 keeps pause to itself: set it with mlnx_qos on the kernel interface")
    } else if [
        "af_packet",
        "af_xdp",
        "tap",
        "virtio",
        "memif",
        "vhost",
        "ring",
    ]
    .iter()
    .any(|known| is(known))
    {
        Ok("virtual device: pause frames are frames like others")
    } else {
        Ok("no pause by the device; its MAC may keep pause frames it receives")
    }
}

/// Decides a port's flow control.
fn decide(config: &Config, port: &plan::Port, driver_name: &str) -> (&'static str, &'static str) {
    use npcc_config::model::PfcBackend;
    match (config.pfc.backend, port.pfc) {
        (PfcBackend::None, _) => ("none", "pfc.backend: none"),
        (_, PortPfc::Off) => ("none", "pfc: off"),
        (PfcBackend::Software, _) => ("software", "pfc.backend: software"),
        (_, PortPfc::Send | PortPfc::Honour) => ("software", "the port is told to"),
        // A backend of the device is refused by the configuration.
        (PfcBackend::Auto | PfcBackend::Hardware, PortPfc::Auto) => match driver(driver_name) {
            Ok(why) => ("software", why),
            Err(why) => ("none", why),
        },
    }
}

/// The path's lossless part, and what to tell of each port.
#[must_use]
pub fn lossless(config: &Config, ports: &[OpenPort]) -> (LosslessConfig, Vec<PortFlow>) {
    let classes = config.effective_qos().lossless_mask();
    let mut links = Vec::new();
    let mut flows = Vec::new();
    for (plan, open) in config.ports.iter().zip(ports) {
        let (backend, why) = decide(config, plan, open.port.driver_name());
        let speed = open
            .rate
            .map_or_else(|| assumed_speed(Some(&plan.device)), |rate| Rate(rate.0));
        let on = backend == "software";
        let sends = on && sends_pause(plan.pfc, config.pfc.backend, plan.device.id());
        let link = sends.then(|| Link::of(plan, speed));
        links.push(link);
        flows.push(PortFlow {
            backend,
            why,
            send: if sends { classes } else { 0 },
            honour: if on { classes } else { 0 },
            rate: BitRate(speed.0),
            headroom: 0,
            reserved: 0,
            xon_offset: 0,
            hand: RX_BURST * Link::of(plan, speed).frame(),
        });
    }
    let room = Lossless::new(&config.buffer, classes.count_ones(), &links);
    let mut groups = Vec::new();
    for (flow, room) in flows.iter_mut().zip(&room.ports) {
        let mut of_port = [GroupConfig::default(); 8];
        if let Some(room) = room {
            flow.headroom = room.headroom;
            flow.reserved = room.reserved;
            flow.xon_offset = room.xon_offset;
            for (n, group) in (0u8..).zip(&mut of_port) {
                if classes & 1 << n != 0 {
                    *group = GroupConfig {
                        lossless: true,
                        reserved: room.reserved,
                        headroom: room.headroom,
                        xon: room.reserved,
                        xon_offset: room.xon_offset,
                    };
                }
            }
        }
        groups.push(of_port);
    }
    let pauses = flows.iter().map(|flow| PauseConfig {
        send: flow.send,
        honour: flow.honour,
        rate: flow.rate,
        pressure: PRESSURE,
        watchdog: (flow.honour != 0).then(|| watchdog(config)),
    });
    let shared = config.buffer.shared_headroom.0;
    let lossless = LosslessConfig {
        buffer: BufferConfig {
            pool: super::path::pool(config),
            min_frame: config.buffer.lossless_min_frame.short(),
            shared_headroom: (shared != 0).then_some(room.headroom),
            groups,
        },
        ports: pauses.collect(),
    };
    (lossless, flows)
}

const fn watchdog(config: &Config) -> WatchdogConfig {
    let watchdog = &config.pfc.watchdog;
    WatchdogConfig {
        detect: Nanos(watchdog.detect.nanos()),
        restore: Nanos(watchdog.restore.nanos()),
        poll: Nanos(watchdog.poll.nanos()),
        action: match watchdog.action {
            WatchdogAction::Drop => StormAction::Drop,
            WatchdogAction::Forward => StormAction::Forward,
            WatchdogAction::Alert => StormAction::Alert,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_that_cannot_are_named_with_the_reason() {
        assert!(driver("net_i40e").unwrap_err().contains("i40e"));
        assert!(driver("mlx5_pci").is_err() && driver("net_pcap").is_err());
        assert!(driver("net_af_packet").is_ok() && driver("net_ixgbe").is_ok());
    }
}
