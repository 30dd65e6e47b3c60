//! Defaults of NPCC's settings, each declared once: settings, configuration, its schema and the simulator read them. docs/npcc.md says what
//! each is for.

use npcc_pipeline::units::{BitRate, Nanos};

use npcc_roce::pair::Evidence;

pub use crate::dcqcn::NIC_MIN_CNP_INTERVAL;
pub use npcc_roce::build::CNP_DSCP;

/// Time between ticks.
pub const TICK: Nanos = Nanos::from_micros(20);
/// Number of ticks that a rise must last so as not to count as a microburst.
pub const FILTER: u32 = 3;
/// Time of the rate-increase timer of the senders' network cards.
pub const RECOVERY: Nanos = Nanos::from_micros(300);
/// Shortest time between two CNPs to one flow in rounds of few, and for marks while the backlog of a pause waits.
pub const MIN_CNP_INTERVAL: Nanos = Nanos::from_micros(60);
/// Time from a CNP to its effect in the queue, until it is learned.
pub const FEEDBACK: Nanos = Nanos::from_micros(20);
/// Depth from which a queue is shallow, as a time of its drain rate.
pub const SHALLOW: Nanos = Nanos::from_micros(30);
/// Depth from which a queue is deep, as a time of its drain rate.
pub const DEEP: Nanos = Nanos::from_micros(120);
/// Drain rate for which policies have their default parameters.
pub const DRAIN: BitRate = BitRate(100_000_000_000);
/// Capacity of the flow table.
pub const FLOWS: usize = 65_536;
/// Weakest evidence by which a sender is signalled.
pub const EVIDENCE: Evidence = Evidence::Port;
/// Wire bytes that a flow with all of the drain rate must put into a queue between two CNPs to its sender.
pub const EARNED: u64 = 16 << 10;
/// Share of a port's rate that CNPs may take, in thousandths.
pub const CAP: u16 = 50;
/// CNPs a second of the whole switch.
pub const CAP_PER_SECOND: u32 = 1_000_000;
/// Priority of the queue that CNPs use.
pub const CNP_PRIORITY: u8 = 6;
