//! Quantities as an operator writes them: `64MB`, `25Gbps`, `30us`, `100km`, `10%`, `16k`.
//!
//! Law: every type parses from text, prints the shortest text that parses back to the same value,
//! and refuses what it cannot hold exactly. A refusal names the offending text; its alternate form
//! (`{:#}`) says what would have been accepted, which diagnostics show as the hint.
//!
//! Bare integers are taken where the unit is beyond doubt (bytes, bits per second, percent, counts);
//! times and lengths need their unit, because nobody agrees on what `30` means.

mod auto;
mod decimal;
mod error;
mod mac;
mod net;
mod percent;
mod quantities;
mod ranged;
mod scalar;
mod threshold;

pub use auto::Auto;
pub use error::UnitError;
pub use mac::MacAddr;
pub use net::{Address, Interface, Prefix};
pub use percent::Percent;
pub use quantities::{Bytes, Count, Length, Rate, Time};
pub use ranged::Ranged;
pub use threshold::Threshold;

#[cfg(test)]
mod tests;
