//! NPCC: decides which senders are signalled, by which queue pair and when.
//!
//! ```text
//!   worker:   Sighting -> FlowCache --Record--> ring
//!   control:  ring -> npcc_roce: ConnectionTable (whose QPN); FlowTable (which queue); depth (-> Detector) -> Policy -> round -> CnpRequest
//!   switch:   CnpRequest -> next hop -> npcc_roce: CnpSpec::build -> strict queue
//! ```
//! The default policy uses a queue's depth, its drain rate and the expected cuts, not the detector; its fallback and the policy `npcc` use the
//! detector.
//!
//! Law: nothing here reads a clock, does I/O, locks or panics, and nothing called per packet or per tick allocates;
//! entries beyond a table's capacity are refused and counted. It does not resolve next hops: the switch has the routes.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod action;
pub mod admission;
pub mod control;
mod dcqcn;
mod deadline;
pub mod defaults;
pub mod detector;
pub mod flow_cache;
mod host_rtt;
pub mod host_rules;
pub mod hosts;
pub mod log;
pub mod policy;
pub mod response;
pub mod responsiveness;
pub mod status;
pub mod table;
mod tracker;
pub mod uncounted;
mod window;

pub(crate) use npcc_pipeline::seqlock;

#[cfg(test)]
#[cfg(not(loom))]
mod traffic_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod safety_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod limits_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod flood_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod scale_tests;

#[cfg(test)]
#[cfg(not(loom))]
mod doubt_tests;
