//! Model hosts: the behaviour of a RoCEv2 network card, as pure state machines. Time is an argument; nothing here knows the engine.
//!
//! - a *rate control* ([`RateControl`]): DCQCN's reaction point and senders to compare with, one file each;
//! - the notification point ([`np`]): when a receiver sends a CNP;
//! - the reliable connection ([`rc`]): go-back-N and selective repeat; READ is the same with request credit;
//! - the answer to PFC ([`pause`]).

pub mod np;
pub mod paper;
pub mod params;
pub mod pause;
pub mod rc;
pub mod swift;
pub mod vendor;

use npcc_pipeline::units::Nanos;

/// Rate in gigabits per second, which is bits per nanosecond.
pub type Gbps = f64;

/// Rate control of one queue pair.
pub trait RateControl: std::fmt::Debug + Send {
    /// Returns the rate now.
    fn rate(&mut self, now: Nanos) -> Gbps;

    /// Records that a data packet of `bytes` on the wire was sent.
    fn sent(&mut self, bytes: u64, now: Nanos);

    /// Handles a CNP for this queue pair; DCQCN+ reads `period` from it.
    fn cnp(&mut self, period: Option<Nanos>, now: Nanos);

    /// Handles an acknowledgement that came `rtt` after its packet was sent.
    fn rtt(&mut self, rtt: Nanos, now: Nanos);

    /// Returns the limit on bytes in flight, if this sender has one.
    fn window(&self) -> Option<u64> {
        None
    }
}
