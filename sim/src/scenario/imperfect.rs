//! What a switch and its surroundings do in reality that the plain model leaves out. All absent by default.

use npcc_config::units::{Nanos, Percent};
use serde::Deserialize;

/// Everything absent: every tick on time, every CNP arrives, depths are exact, nobody pauses the link.
#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Imperfections {
    /// Each tick of a control core begins up to so much late, evenly spread.
    pub tick_jitter: Nanos,
    /// This share of the ticks begins later still, as on a core that somebody else uses too ...
    pub tick_late: Percent,
    /// ... by up to this, evenly spread.
    pub tick_late_by: Nanos,
    /// Share of the CNPs that reach a sender's card and are not read there, whoever sent them.
    pub cnp_loss: Percent,
    /// The control core sees a depth as it was when the last so many frames had come and gone; 0 and 1: as it is.
    pub depth_every: u32,
    /// The far end of a link pauses it.
    pub pauses: Vec<FarPause>,
}

/// The far end of a link pauses data now and then.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarPause {
    /// Which link; paused is its `from` end.
    pub link: String,
    /// For how long each time.
    pub time: Nanos,
    /// Time from the start of a pause to that of the next, give or take a quarter.
    pub every: Nanos,
    /// When the first begins, from the start, and the others come after it at the same times whatever the seed. When absent, the first is
    /// anywhere within `every`, and a seed decides about all.
    #[serde(default)]
    pub first: Option<Nanos>,
}
