//! Quantities as an operator writes them: `64MB`, `25Gbps`, `30us`, `100km`, `10%`, `16k`.
//!
//! Law: every type parses from text, prints the shortest text that parses back to the same value,
//! and refuses what it cannot hold exactly. A refusal names the offending text; its alternate form
//! (`{:#}`) says what would have been accepted, which diagnostics show as the hint.
//!
//! Bare integers are taken where the unit is beyond doubt (bytes, bits per second, percent, counts);
//! times and lengths need their unit, because nobody agrees on what `30` means.

mod auto;
mod net;
mod percent;
mod quantities;
mod ranged;
mod threshold;
mod word_or;
mod written;

pub use auto::Auto;
pub use net::{Address, Interface, Prefix};
pub use npcc_pipeline::quantity::UnitError;
pub use npcc_pipeline::units::{BitRate, Bytes, Mac, Nanos, RefusedMac};
pub use percent::Percent;
pub use quantities::{Count, Length};
pub use ranged::Ranged;
pub use threshold::Threshold;
pub(crate) use word_or::word_or;
pub use written::Written;

#[cfg(test)]
mod tests;
