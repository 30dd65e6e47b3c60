//! The kernel as the control plane: its links, addresses, neighbours, next hops and routes, and what is to be forwarded by them.
//!
//! ```text
//!   kernel --netlink--> wire --events--> table --changes--> wanted --Fib--> the switch
//!     ^                                                       |
//!     `---- requests: resolve this next hop, this address ----'
//! ```
//! [`wire`] reads and writes messages, [`table`] is the kernel's state as the messages tell it and as they leave it unsaid,
//! [`wanted`] says what is to be forwarded and gives only what changed to a [`fib::Fib`]. None of the three does I/O. At the
//! edge stand [`netlink`] (sockets and the thread that reads them), [`tap`] (a device in Linux for each port) and
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
