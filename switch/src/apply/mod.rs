//! Changes of the running state: the only path from a configuration to what runs.
//!
//! ```text
//!   file, overrides -> EffectiveConfig \
//!                                       Desired -> differences to what runs -> routes, workers, control core
//!                                links /
//! ```
//!
//! A key may reach several targets: `shallow` and `hard` of NPCC go to the workers, as the depths whose crossing they report, and to the
//! control core, for its detectors and policies.

pub mod derived;
pub mod effective;
pub mod keys;
pub mod outcome;
pub mod running;
#[cfg(test)]
mod tests;
