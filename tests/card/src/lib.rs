//! Model of a network card and its DPDK driver, for tests: no DPDK, no I/O, and time as an argument.
//!
//! A [`Card`] has transmit rings that share one wire. Each ring takes frames as long as the driver has free descriptors, answers
//! `rte_eth_tx_descriptor_status` in the driver's style, and frees sent buffers when the driver would. The card also knows the truth that
//! no driver reports: bytes and frames that it still holds. A [`Profile`] has the answers of one driver, with the lines of DPDK's source
//! that say so.
#![forbid(unsafe_code)]

pub mod answers;
mod card;
mod pause;
mod profile;
mod receive;
mod ring;
pub mod transcript;

pub use card::{Card, Picos};
pub use pause::Pauses;
pub use profile::{Profile, Row};
pub use receive::Shape;
pub use ring::{Answer, Reports, Status, TxProfile, TxRing};
