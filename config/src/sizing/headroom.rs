//! Headroom of a lossless queue: what still arrives after pause was asked for.
//!
//! The formula is SONiC's (dynamic buffer model, `buffer_headroom_mellanox.lua`) with a cell
//! occupancy of exactly one and no gearbox or MAC/PHY term, as buffers here are byte-exact.

use crate::model::PeerResponse;
use crate::plan::{Config, Port};
use crate::units::{Length, Rate, Time};

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
/// A frame of any priority that the peer had begun, in bytes.
const PORT_MTU: u64 = 9100;
/// A frame of the lossless priority, in bytes.
const LOSSLESS_MTU: u64 = 1024;

/// Headroom of one lossless priority of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// The port's name.
    pub port: String,
    /// The priority.
    pub priority: u8,
    /// Length of the cable.
    pub cable: Length,
    /// The rate it was computed for; `None` when only the link itself knows.
    pub speed: Option<Rate>,
    /// Bytes that may still arrive; `None` when the rate is not known.
    pub bytes: Option<u64>,
}

/// Bytes that still arrive after pause was asked for, rounded up to whole KiB.
#[must_use]
pub fn bytes(cable: Length, speed: Rate, response: PeerResponse) -> u64 {
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

/// Quanta of the next higher speed in the table.
fn ieee(speed: Rate) -> u64 {
    let row = QUANTA
        .iter()
        .find(|(rate, _)| speed.0 <= *rate)
        .or(QUANTA.last());
    row.map_or(0, |(_, quanta)| *quanta)
}

fn within(speed: Rate, time: Time) -> u64 {
    speed.bytes_in(time).0
}

/// Headroom of every lossless priority of every port.
pub(super) fn table(config: &Config) -> Vec<Headroom> {
    let lossless = |p: &u8| config.qos.priorities[usize::from(*p)].lossless;
    let row = |port: &Port, priority| Headroom {
        port: port.name.clone(),
        priority,
        cable: port.cable,
        speed: port.speed,
        bytes: port
            .speed
            .map(|speed| bytes(port.cable, speed, port.peer_response)),
    };
    let rows = |port| {
        (0..8)
            .filter(lossless)
            .map(move |priority| row(port, priority))
    };
    config.ports.iter().flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_formula() {
        let gig = |n: u64| Rate(n * 1_000_000_000);
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

    #[test]
    fn a_slow_peer_needs_more() {
        let near = Length::from_metres(40);
        let slow = PeerResponse::Within(Time::from_micros(50));
        let speed = Rate(10_000_000_000);
        assert!(bytes(near, speed, slow) > bytes(near, speed, PeerResponse::Ieee) + 50_000);
    }
}
