//! The kernel's state as its messages tell it, and as they leave it unsaid.
//!
//! The kernel removes much without a message: routes of a device that is switched off, next-hop objects of one that loses its
//! carrier with all routes by them, routes from an address that is gone. [`model::Model`] does the same by itself, and says
//! what changed ([`changes::Changes`]).

pub mod changes;
pub mod links;
pub mod model;
pub mod neighbors;
pub mod next_hops;
pub mod prefixes;
mod rib;
pub mod routes;
pub mod sweep;
pub mod ways;
