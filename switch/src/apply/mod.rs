//! The one way to change what runs.
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
