//! Ends that are learned and not paired yet, for whoever keeps them over a restart of the switch.
//!
//! Law: an end that is recalled says as much as one that was seen and has been silent since. What is concluded from the ends of both
//! directions follows the same rules then, so nothing is paired by it before a packet shows the other end, and evidence that wants
//! packets of both (`psn`, `port`, `only`) has none before they come.

use npcc_pipeline::units::Nanos;

use super::connections::ConnectionTable;
use super::ends::Transport;
use super::loose_end::LooseEnd;

impl ConnectionTable {
    /// Gives the loose ends in so many places of the table from one on; where to go on.
    pub(crate) fn loose_ends(
        &self,
        from: u32,
        places: u32,
        now: Nanos,
        mut give: impl FnMut(LooseEnd),
    ) -> u32 {
        let end = from.saturating_add(places);
        for place in from..end {
            if let Some(loose) = self.ends.loose(place).filter(|end| end.is_known(now)) {
                give(loose);
            }
        }
        if end < self.ends.places() { end } else { 0 }
    }

    /// Takes in an end that was learned before the start; `false` where it is known already, or there is no room.
    pub(crate) fn recall(&mut self, loose: &LooseEnd, now: Nanos) -> bool {
        if self.ends.find(&loose.key).is_some() {
            return false;
        }
        let transport = Transport::of_connection(loose.is_uc);
        let made = self.ends.make(&loose.key, transport, now);
        made.is_some_and(|end| {
            self.ends.see_port(end, loose.port, now);
            true
        })
    }
}
