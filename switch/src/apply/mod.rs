//! Changes of the running state: the only path from a configuration to what runs.
//!
//! ```text
//!   ConfigFile, with values of `set` -> Config \
//!                                                DesiredState -> its differences from the RunningState -> routes, workers, control core
//!                                         links /
//! ```
//!
//! A key may reach several targets: `shallow` and `hard` of NPCC go to the workers, as the depths whose crossing they report, and to the
//! control core, for its detectors and policies.

pub mod desired;
pub mod in_force;
pub mod keys;
pub mod outcome;
pub mod running;
#[cfg(test)]
mod tests;
