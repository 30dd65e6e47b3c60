//! Changes of the running state: the only path from a configuration to what runs.
//!
//! ```text
//!   file, overrides -> Wanted \
//!                              Desired -> differences to what runs -> routes, workers, control core
//!                       links /
//! ```

pub mod desired;
pub mod keys;
pub mod outcome;
pub mod running;
#[cfg(test)]
mod tests;
pub mod wanted;
