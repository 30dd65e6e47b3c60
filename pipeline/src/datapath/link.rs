//! A port's link goes down and comes up.
//!
//! Law: while a link is down nothing enters the port's queues, and what waits in them is dropped as `link_down`, a bounded
//! number of frames a turn; so nothing that came in by another port stays charged to it, and no sender is paused for a peer
//! that is not there. What either side had paused is forgotten: after a link comes up nobody knows what the other heard.

use super::{Datapath, PortConfig};
use crate::buffer::BufferConfig;
use crate::frame::FrameBuf;
use crate::tap::FlowTap;
use crate::units::{BitRate, Nanos, PortId, Priority};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// The link of `port` is down, or the operator took it down.
    #[cold]
    pub fn link_down(&mut self, port: PortId, now: Nanos) {
        self.queue_bypassed(port);
        let egress = &mut self.side.ports[port];
        egress.set_down(true);
        egress.set_dropping(0);
        self.pause[port].forget(now, &self.counters.of(port).flow);
    }

    /// The link of `port` is up: frames are let in again.
    #[cold]
    pub fn link_up(&mut self, port: PortId) {
        self.side.ports[port].set_down(false);
    }

    /// Whether the link of `port` is down.
    #[must_use]
    pub fn is_down(&self, port: PortId) -> bool {
        self.side.ports[port].is_down()
    }

    /// Gives `port` the settings that follow from its link's speed: shaper, queues, how long quanta last.
    #[cold]
    pub fn set_speed(&mut self, port: PortId, config: &PortConfig, link: BitRate) {
        let egress = &mut self.side.ports[port];
        egress.set_rate(config.egress.rate);
        for (priority, queue) in Priority::all().zip(&config.egress.queues) {
            egress.reconfigure(priority, queue);
        }
        self.side.ecn[port] = config.ecn;
        self.pause[port].set_speed(link);
    }

    /// Divides the buffer anew: headroom and reserves follow the links' speeds. What is held stays held.
    #[cold]
    pub fn divide_buffer(&mut self, config: &BufferConfig) {
        self.side.buffer.divide(config);
        self.config = config.clone();
    }
}
