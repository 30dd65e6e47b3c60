//! Headroom of a lossless queue: bytes that still arrive after XOFF is due.
//!
//! The formula is SONiC's (dynamic buffer model, `buffer_headroom_mellanox.lua`) with a cell
//! occupancy of exactly one and no gearbox or MAC/PHY term, as buffers here are byte-exact. A software
//! switch adds what a chip does not have: a receive burst in flight, a worker loop that polls late,
//! and its own transmit ring, behind which the pause frame waits.

use crate::model::{self, PeerResponse, PfcBackend, PortPfc};
use crate::resolved::{self, Config};
use crate::units::{BitRate, Length, Nanos, Threshold};
use npcc_pipeline::tx_ring::BATCH;

/// Pause quanta (64 bytes each) within which a peer must stop, by its speed in bits per second.
const QUANTA: [(u64, u64); 7] = [
    (10_000_000_000, 67),
    (25_000_000_000, 80),
    (40_000_000_000, 118),
    (50_000_000_000, 147),
    (100_000_000_000, 394),
    (200_000_000_000, 453),
    (400_000_000_000, 905),
];
/// Speed of light in fibre, metres per second.
const LIGHT: u128 = 198_000_000;
/// Frame of any priority that the peer had begun to send, in bytes.
const PORT_MTU: u64 = 9100;
/// Frame of the lossless priority, in bytes.
const LOSSLESS_MTU: u64 = 1024;

/// Maximum number of frames of one receive burst.
pub const RX_BURST: u64 = 64;
/// Overhead of a full frame beyond its IP packet, in bytes: link headers, preamble, inter-frame gap and FCS.
pub const FRAME_OVERHEAD: u64 = 22 + 24;
/// Speed assumed for the headroom of a virtual device without `speed`: what its link reports.
pub(super) const VIRTUAL_SPEED: BitRate = BitRate(10_000_000_000);
/// Speed assumed for the headroom of a physical device, until its link is up.
pub(super) const PHYSICAL_SPEED: BitRate = BitRate(100_000_000_000);

/// Inputs of the headroom computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Length of the cable.
    pub cable: Length,
    /// Speed of the link.
    pub speed: BitRate,
    /// Response time of the peer to a pause frame.
    pub response: PeerResponse,
    /// IP MTU in bytes.
    pub mtu: u16,
    /// Maximum that waits in the transmit ring, if not the default.
    pub outstanding: Option<Threshold>,
    /// Most full frames that the transmit ring may hold besides, because its driver confirms them in batches: 0 for a virtual device.
    pub batch: u64,
    /// Longest iteration of a worker's loop that headroom must cover.
    pub turn: Nanos,
    /// Number of workers that receive from the port.
    pub receivers: u64,
    /// Number of lossless priorities of the port.
    pub lossless: u32,
}

impl Link {
    /// Link of a resolved port at `speed`, received from by `receivers` workers whose loop iterations take at most `turn`.
    #[must_use]
    pub fn of(port: &resolved::Port, speed: BitRate, turn: Nanos, receivers: u64) -> Self {
        Self {
            cable: port.cable,
            speed,
            response: port.peer_response,
            mtu: port.mtu,
            outstanding: port.tx_outstanding,
            batch: batch(Some(&port.device)),
            turn,
            receivers,
            lossless: port.qos.lossless_mask().count_ones(),
        }
    }

    /// Link of a port as configured, before its link is up.
    pub(super) fn configured(config: &Config, port: &resolved::Port) -> Self {
        let device = Some(&port.device);
        let (speed, _) = link_speed(device, (port.link_speed, port.speed));
        let receivers = receivers(device, config.cores.workers.len());
        Self::of(port, speed, config.buffer.loop_time, receivers)
    }

    pub(crate) fn of_model(
        port: &model::Port,
        qos: &resolved::ResolvedQos,
        turn: Nanos,
        workers: usize,
    ) -> Self {
        let device = resolved::Device::parse(&port.device);
        let written = (port.link_speed.written(), port.speed);
        Self {
            cable: port.cable,
            speed: link_speed(device.as_ref(), written).0,
            response: port.peer_response,
            mtu: port.mtu.short(),
            outstanding: port.tx_outstanding,
            batch: batch(device.as_ref()),
            turn,
            receivers: receivers(device.as_ref(), workers),
            lossless: qos.lossless_mask().count_ones(),
        }
    }

    /// Returns the size of a full frame on the wire, in bytes.
    #[must_use]
    pub fn frame(&self) -> u64 {
        u64::from(self.mtu) + FRAME_OVERHEAD
    }

    /// Wire bytes the device's transmit ring may hold: as configured, or two full frames and at least 2us of the link.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.outstanding.map_or_else(
            || within(self.speed, Nanos::from_micros(2)).max(2 * self.frame()),
            |depth| depth.bytes(self.speed),
        )
    }

    /// Bytes that still arrive on one priority after its XOFF is due, in whole KiB.
    ///
    /// Each receiver may have a burst in flight when the group crosses its threshold. Frames that came while a worker was away wait in
    /// the device's ring and are charged after that, and as many come in the iteration in which the pause is sent. A port's owner
    /// learns of another receiver's burst one iteration later.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        let turns = if self.receivers > 1 { 3 } else { 2 };
        [
            self.receivers.max(1) * RX_BURST * self.frame(),
            turns * within(self.speed, self.turn),
            self.outstanding() + self.batch * self.frame(),
        ]
        .into_iter()
        .fold(
            bytes(self.cable, self.speed, self.response),
            u64::saturating_add,
        )
        .div_ceil(1024)
        .saturating_mul(1024)
    }
}

npcc_pipeline::named! {
    /// Source of a link's speed before the link is up.
    pub enum SpeedFrom {
        /// Configured as `link_speed`.
        Written = "link_speed",
        /// Configured as `speed` of a virtual device, which has no other.
        Shaper = "speed",
        /// Assumed: not known yet.
        Assumed = "assumed",
    }
}

/// Returns the speed of a link before it is up, from `link_speed` and `speed` as configured, and its source.
#[must_use]
pub fn link_speed(
    device: Option<&resolved::Device>,
    (link, shaper): (Option<BitRate>, Option<BitRate>),
) -> (BitRate, SpeedFrom) {
    let physical = matches!(device, Some(resolved::Device::Pci { .. }));
    match (link, shaper) {
        (Some(link), _) => (link, SpeedFrom::Written),
        (None, Some(shaper)) if !physical => (shaper, SpeedFrom::Shaper),
        _ if physical => (
            PHYSICAL_SPEED.max(shaper.unwrap_or(BitRate(0))),
            SpeedFrom::Assumed,
        ),
        _ => (VIRTUAL_SPEED, SpeedFrom::Assumed),
    }
}

/// Number of workers, out of `workers`, that may receive from a device: all of them for a PCI device, which may spread flows; else one.
#[must_use]
pub fn receivers(device: Option<&resolved::Device>, workers: usize) -> u64 {
    match device {
        Some(resolved::Device::Pci { .. }) => u64::try_from(workers).unwrap_or(u64::MAX).max(1),
        _ => 1,
    }
}

/// Returns the most frames that the transmit ring of a device may hold besides its bound: as many as the drivers of PCI devices leave
/// unconfirmed, whichever the driver is.
#[must_use]
pub(super) fn batch(device: Option<&resolved::Device>) -> u64 {
    match device {
        Some(resolved::Device::Pci { .. }) => BATCH as u64,
        _ => 0,
    }
}

/// Headroom of one lossless priority of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// Name of the port.
    pub port: String,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Length of the cable.
    pub cable: Length,
    /// Link speed for which it was computed.
    pub speed: BitRate,
    /// Source of that speed.
    pub from: SpeedFrom,
    /// Bytes that may still arrive; `None` when the port sends no pause.
    pub bytes: Option<u64>,
    /// Part of them for full frames in the transmit ring whose driver confirms in batches.
    pub batch: u64,
}

/// Returns SONiC's part: bytes that still arrive after the pause frame left, rounded up to whole KiB.
#[must_use]
pub fn bytes(cable: Length, speed: BitRate, response: PeerResponse) -> u64 {
    let flight = 2 * u128::from(cable.0) * u128::from(speed.0) / LIGHT / 8 / 1000;
    let flight = u64::try_from(flight).unwrap_or(u64::MAX);
    let response = match response {
        PeerResponse::Ieee => ieee(speed) * 64,
        PeerResponse::Within(time) => within(speed, time),
    };
    (PORT_MTU + LOSSLESS_MTU)
        .saturating_add(flight)
        .saturating_add(response)
        .div_ceil(1024)
        .saturating_mul(1024)
}

/// Returns the quanta of the next higher speed in the table.
fn ieee(speed: BitRate) -> u64 {
    let row = QUANTA
        .iter()
        .find(|(rate, _)| speed.0 <= *rate)
        .or(QUANTA.last());
    row.map_or(0, |(_, quanta)| *quanta)
}

fn within(speed: BitRate, time: Nanos) -> u64 {
    speed.bytes_in(time)
}

/// Computes the headroom of every lossless priority of every port.
pub(super) fn table(config: &Config) -> Vec<Headroom> {
    let row = |port: &resolved::Port, priority| {
        let (speed, from) = link_speed(Some(&port.device), (port.link_speed, port.speed));
        let link = Link::configured(config, port);
        let sends = sends_pause(port.pfc, config.pfc.backend, port.device.id());
        Headroom {
            port: port.name.clone(),
            priority,
            cable: port.cable,
            speed,
            from,
            bytes: sends.then(|| link.headroom()),
            batch: if sends { link.batch * link.frame() } else { 0 },
        }
    };
    let rows = |port: &resolved::Port| {
        (0..8)
            .filter(|priority| port.qos.lossless_mask() & (1 << priority) != 0)
            .map(|priority| row(port, priority))
            .collect::<Vec<_>>()
    };
    config.ports.iter().flat_map(rows).collect()
}

/// Returns true if a port sends pause: as configured, or by default when the device can have a peer that honours it.
#[must_use]
pub fn sends_pause(pfc: PortPfc, backend: PfcBackend, device: &str) -> bool {
    match (backend, pfc) {
        (PfcBackend::None, _) | (_, PortPfc::Off | PortPfc::Honour) => false,
        (_, PortPfc::Send) => true,
        (_, PortPfc::Auto) => !is_a_file(device),
    }
}

/// Returns true for a device without a peer: a capture file or the null device.
fn is_a_file(device: &str) -> bool {
    ["net_pcap", "net_null"]
        .iter()
        .any(|driver| device.starts_with(driver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_formula() {
        let gig = |n: u64| BitRate(n * 1_000_000_000);
        // KiB for 40 m, 300 m and 4 km, from SONiC's script with cell occupancy one.
        let table = [
            (10, [15, 18, 64]),
            (25, [17, 25, 139]),
            (100, [40, 72, 528]),
            (400, [87, 215, 2040]),
        ];
        for (speed, row) in table {
            for (metres, kib) in [40, 300, 4000].into_iter().zip(row) {
                let got = bytes(Length::from_metres(metres), gig(speed), PeerResponse::Ieee);
                assert!(
                    got.abs_diff(kib * 1024) <= 2048,
                    "{speed}G {metres} m: {got}"
                );
            }
        }
        let far = bytes(Length::from_metres(100_000), gig(100), PeerResponse::Ieee);
        assert_eq!(far, 12_661_760);
    }

    /// 100 km at 100G: 12.7 MB of SONiC's formula, a burst of 64 full frames, what came in an iteration of 50us and comes in the next, and two
    /// frames in the ring; with three receivers, three bursts and one iteration more.
    #[test]
    fn software_adds_its_own() {
        let link = Link {
            receivers: 1,
            lossless: 1,
            cable: Length::from_metres(100_000),
            speed: BitRate(100_000_000_000),
            response: PeerResponse::Ieee,
            mtu: 9100,
            outstanding: None,
            batch: 0,
            turn: Nanos::from_micros(50),
        };
        let own = 64 * 9146 + 2 * 625_000 + 25_000;
        assert_eq!(link.headroom(), (12_661_760u64 + own).div_ceil(1024) * 1024);
        let several = Link {
            receivers: 3,
            ..link
        };
        let more = several.headroom() - link.headroom();
        assert!(more.abs_diff(2 * 64 * 9146 + 625_000) <= 1024, "{more}");
        let ring = Link {
            outstanding: Some(Threshold::from_micros(12)),
            ..link
        };
        assert!(ring.headroom() >= link.headroom() + 124_000);
        let batched = Link { batch: 64, ..link };
        assert!(batched.headroom() >= link.headroom() + 64 * 9146 - 1024);
        let late = Link {
            turn: Nanos::from_micros(150),
            ..link
        };
        assert!(late.headroom() >= link.headroom() + 1_249_000);
    }

    /// Two full frames and at least 2us of the link: at 10G 2us are 2,500 bytes, less than a full frame.
    #[test]
    fn the_transmit_ring_holds_two_full_frames_whatever_the_speed() {
        let outstanding = |gig: u64, mtu: u16| {
            let link = Link {
                receivers: 1,
                lossless: 1,
                cable: Length::from_metres(40),
                speed: BitRate(gig * 1_000_000_000),
                response: PeerResponse::Ieee,
                mtu,
                outstanding: None,
                batch: 0,
                turn: Nanos::from_micros(50),
            };
            link.outstanding()
        };
        for (gig, mtu, bytes) in [
            (1, 1500, 2 * 1_546),
            (10, 9100, 2 * 9_146),
            (25, 1500, 6_250),
            (25, 9100, 2 * 9_146),
            (100, 9100, 25_000),
        ] {
            assert_eq!(outstanding(gig, mtu), bytes, "{gig}G, mtu {mtu}");
        }
    }

    #[test]
    fn a_slow_peer_needs_more() {
        let near = Length::from_metres(40);
        let slow = PeerResponse::Within(Nanos::from_micros(50));
        let speed = BitRate(10_000_000_000);
        assert!(bytes(near, speed, slow) > bytes(near, speed, PeerResponse::Ieee) + 50_000);
    }

    #[test]
    fn a_link_of_unknown_speed_is_as_fast_as_its_kind_may_be() {
        let gig = |n: u64| BitRate(n * 1_000_000_000);
        let nic = resolved::Device::parse("0000:3b:00.0");
        let file = resolved::Device::parse("net_null0");
        let speed = |device: &Option<resolved::Device>, link, shaper| {
            let (speed, from) = link_speed(device.as_ref(), (link, shaper));
            (speed, from.name())
        };
        assert_eq!(speed(&nic, Some(gig(25)), None), (gig(25), "link_speed"));
        // A shaper leaves the link as fast as it is: pause comes and goes at the link's speed.
        assert_eq!(speed(&nic, None, Some(gig(10))), (gig(100), "assumed"));
        assert_eq!(speed(&nic, None, Some(gig(400))), (gig(400), "assumed"));
        assert_eq!(speed(&file, None, Some(gig(40))), (gig(40), "speed"));
        assert_eq!(speed(&file, None, None), (gig(10), "assumed"));
    }

    #[test]
    fn a_capture_device_is_not_paused_unless_configured() {
        let auto = PfcBackend::Auto;
        assert!(!sends_pause(PortPfc::Auto, auto, "net_pcap0"));
        assert!(sends_pause(PortPfc::Send, auto, "net_pcap0"));
        assert!(sends_pause(PortPfc::Auto, auto, "net_af_packet0"));
        assert!(!sends_pause(
            PortPfc::Send,
            PfcBackend::None,
            "0000:3b:00.0"
        ));
    }
}
