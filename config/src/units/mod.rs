//! Quantities as an operator writes them: `64MB`, `25Gbps`, `30us`, `100km`, `10%`, `16k`.
//!
//! Law: every type parses from text, prints the shortest text that parses back to the same value,
//! and refuses what it cannot hold exactly. A refusal names the offending text; its alternate form
//! (`{:#}`) says what would have been accepted, which diagnostics show as the hint.
//!
//! Bare integers are taken where the unit is beyond doubt (bytes, bits per second, percent, counts);
//! times and lengths need their unit, because nobody agrees on what `30` means.

mod bytes;
mod count;
mod decimal;
mod error;
mod length;
mod mac;
mod net;
mod percent;
mod ranged;
mod rate;
mod scalar;
mod threshold;
mod time;

pub use bytes::Bytes;
pub use count::Count;
pub use error::UnitError;
pub use length::Length;
pub use mac::MacAddr;
pub use net::{Address, Interface, Prefix};
pub use percent::Percent;
pub use ranged::Ranged;
pub use rate::Rate;
pub use threshold::Threshold;
pub use time::Time;

#[cfg(test)]
mod tests;
