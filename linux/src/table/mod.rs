//! Mirror of the kernel's state, including changes that the kernel does not notify.
//!
//! The kernel removes much without a notification: routes of a device that is set down, next-hop objects of a device that loses its
//! carrier with all routes over them, routes from an address that is gone. [`model::Model`] does the same by itself, and records
//! the changes ([`changes::Changes`]).

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
