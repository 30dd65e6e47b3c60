//! Bus between switches: what two boxes and a fleet share over NATS.
//!
//! The switch has no outgoing connections. `npcc-feed` reads the ends of queue pairs that it saw from its local socket, exchanges them with
//! the peers' feeds, and suggests the peers' ends to the switch. [`sync`] is the protocol between two feeds, without I/O and clock;
//! [`bus`] is the client of NATS, [`switch`] that of the switch, and [`run`] puts them together. [`fleet`] has the records that a box
//! publishes of itself, and what a reader makes of them.

#![forbid(unsafe_code)]

pub mod agent;
pub mod bus;
mod clock;
pub mod doctor;
pub mod fleet;
pub mod name;
mod octets;
pub mod run;
pub mod settings;
pub mod switch;
pub mod sync;
pub mod trial;
