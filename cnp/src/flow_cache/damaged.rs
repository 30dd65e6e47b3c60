//! Packets with a wrong ICRC: their card throws them away, so nothing may be learned from them, and none is shown.
//!
//! A packet is checked when all else says that it is shown. A wrong one takes its flow's turn, as a right one does, so that frames of a
//! traffic generator without ICRCs cost no more than others. New flows have turns at once, and each check costs as much as the packet
//! is long: a port at which [`MOST`] were wrong shows nothing more in this turn of the control core (16 us). That is 244,000 wrong ones
//! a second, as many as the [pace](super::pace) lets a worker show.

use npcc_pipeline::counters::Counter;
use npcc_pipeline::icrc;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::MAX_PORTS;

/// Wrong packets of a port in one turn of the control core.
pub(super) const MOST: u8 = 4;

/// When wrong packets of a port were last found, and how many then.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    turn: u32,
    wrong: u8,
}

/// What ports' wrong packets may still cost in this turn.
#[derive(Debug, Default)]
pub(super) struct Damaged([Found; MAX_PORTS]);

impl Damaged {
    /// Whether a packet's ICRC is right; `None` when too many of its port were wrong in this turn of the control core. `counted`
    /// counts the wrong ones of each port.
    pub(super) fn check(
        &mut self,
        sighting: &Sighting<'_>,
        turn: u32,
        counted: &[Counter; MAX_PORTS],
    ) -> Option<bool> {
        let port = sighting.meta.group.ingress().index();
        let (found, counted) = (self.0.get_mut(port)?, counted.get(port)?);
        if found.turn != turn {
            *found = Found { turn, wrong: 0 };
        }
        if found.wrong >= MOST {
            return None;
        }
        let right = icrc::verify(sighting.data, sighting.parsed) == Some(true);
        if !right {
            found.wrong += 1;
            counted.add(1);
        }
        Some(right)
    }
}
