//! Linux integration: the kernel's links, addresses, neighbours, next hops and routes, and the forwarding entries derived from them.
//!
//! ```text
//!   kernel --netlink--> wire --events--> table --changes--> wanted --Fib--> the switch
//!     ^                                                       |
//!     `---- requests: resolve this next hop, this address ----'
//! ```
//! [`wire`] encodes and decodes netlink messages, [`table`] mirrors the kernel's state, including changes that the kernel does not
//! notify, [`wanted`] computes the desired forwarding state and passes only the differences to a [`fib::Fib`]. None of the three does I/O.
//! At the edge are [`netlink`] (sockets and the thread that reads them), [`tap`] (a device in Linux for each port) and
//! [`Integration`], which puts them together.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, reason = "test numbers are small")
)]

pub mod fib;
pub mod integration;
pub mod netlink;
pub mod table;
pub mod tap;
pub mod wanted;
pub mod wire;

pub use integration::{Integration, Left, Running, Settings};
