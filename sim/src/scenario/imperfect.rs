//! Imperfections of a real switch and its surroundings that the plain model leaves out. All are off by default.

use npcc_config::units::{Nanos, Percent};
use serde::Deserialize;

/// Imperfections of a run. Default: every tick is on time, every CNP arrives, depths are exact, no far end pauses its link.
#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Imperfections {
    /// Maximum delay of each tick of a control core, uniformly distributed.
    pub tick_jitter: Nanos,
    /// Share of the ticks that are delayed further, as on a core that another process shares.
    pub tick_late: Percent,
    /// Maximum further delay of these ticks, uniformly distributed.
    pub tick_late_by: Nanos,
    /// Share of the CNPs that reach a sender's card and are lost there, from any source.
    pub cnp_loss: Percent,
    /// True if NPCC puts hosts to trials of their responsiveness from their first CNP on: without, none comes in a run of less than half a second.
    pub trials_at_once: bool,
    /// Number of frames that come or go between two updates of the depth that the control core sees; 0 and 1: always current.
    pub depth_every: u32,
    /// Links that their far end pauses.
    pub pauses: Vec<FarPause>,
}

/// Intermittent pauses of data by the far end of a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarPause {
    /// Name of the link; its `from` end is paused.
    pub link: String,
    /// Duration of each pause.
    pub time: Nanos,
    /// Time from the start of one pause to that of the next, give or take a quarter.
    pub every: Nanos,
    /// Time of the first pause, from the start; the others then come at the same times for every seed. When absent, the first is
    /// anywhere within `every`, and the seed decides all times.
    #[serde(default)]
    pub first: Option<Nanos>,
}
