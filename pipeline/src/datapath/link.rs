//! Changes of a port's link: down, up, and speed.
//!
//! Law: while a link is down nothing enters the port's queues, and the frames in them are dropped as `link_down`, a bounded
//! number per iteration; so no frame for it stays charged to the port it arrived on, and no sender is paused for a peer
//! that is not there. Pauses of either side are forgotten: after a link comes up neither side knows what the other
//! received.
//!
//! Law: a port that is administratively down receives nothing, whatever its device does: each frame is counted as received and dropped as
//! `link_down` before it is parsed, MAC control and frames for Linux included.

use super::capture_points::{self, StoppedFrame};
use super::{Datapath, PortConfig};
use crate::buffer::BufferConfig;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, FrameVec};
use crate::tap::FlowTap;
use crate::units::{BitRate, Nanos, PortId, Priority};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Takes the link of `port` down, after it failed or by the operator's command.
    #[cold]
    pub fn link_down(&mut self, port: PortId, now: Nanos) {
        self.queue_bypassed(port);
        let egress = &mut self.egress_side.ports[port];
        egress.set_down(true);
        egress.set_dropping(0);
        self.pause[port].forget(now, &self.counters.of(port).flow);
    }

    /// Takes the link of `port` up: frames are admitted again.
    #[cold]
    pub fn link_up(&mut self, port: PortId) {
        self.egress_side.ports[port].set_down(false);
    }

    /// Drops what `port` receives from now on, if it is administratively down, or accepts it again.
    #[cold]
    pub fn set_admin(&mut self, port: PortId, up: bool) {
        self.ingress[port].admin_down = !up;
    }

    /// Drops a burst of a port that is administratively down.
    #[cold]
    pub(super) fn drop_received(&mut self, port: PortId, frames: &mut FrameVec<B>, now: Nanos) {
        self.capture.at(now);
        let dropped = StoppedFrame::Dropped(DropReason::LinkDown);
        let mut bytes = 0;
        for buf in frames.iter() {
            bytes += buf.data().len() as u64;
            capture_points::stopped(&mut self.capture, dropped, (buf, port), now);
        }
        let (counters, count) = (self.counters.of(port), frames.len() as u64);
        counters.rx.add(count, bytes);
        counters.drop_all(DropReason::LinkDown, count, bytes);
        B::free_all(frames);
    }

    /// Returns true if the link of `port` is down.
    #[must_use]
    pub fn is_down(&self, port: PortId) -> bool {
        self.egress_side.ports[port].is_down()
    }

    /// Applies the settings of `port` that follow from the speeds of its link and shaper: shaper, queues, marking, duration of quanta.
    #[cold]
    pub fn set_speed(&mut self, port: PortId, config: &PortConfig, link: BitRate) {
        let egress = &mut self.egress_side.ports[port];
        egress.set_rate(config.egress.rate);
        for (priority, queue) in Priority::all().zip(&config.egress.queues) {
            egress.reconfigure(priority, queue);
        }
        self.egress_side.ecn[port] = config.ecn;
        self.pause[port].set_speed(link);
    }

    /// Repartitions the buffer: headroom and reserves follow the links' speeds. Charges are kept.
    #[cold]
    pub fn divide_buffer(&mut self, config: &BufferConfig) {
        self.egress_side.buffer.repartition(config);
        self.config = config.clone();
    }
}
