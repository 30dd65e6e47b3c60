//! Changes of the running state: the only path from a configuration to what runs.
//!
//! ```text
//!   file, overrides -> EffectiveConfig \
//!                                       Desired -> differences to what runs -> routes, workers, control core
//!                                links /
//! ```

pub mod desired;
pub mod effective;
pub mod keys;
pub mod outcome;
pub mod running;
#[cfg(test)]
mod tests;
