//! A simulated switch: the production packet path and control core between links.
//!
//! A port takes one frame at a time when its link is free, so that everything that waits does so in the queue where it is
//! measured, marked and watched. The control core is called at the period it requests; its CNPs are built from the routes and
//! queued as they are made, as the switch's injector does.

use std::cell::Cell;
use std::collections::VecDeque;

use npcc_cnp::admission::{CnpRequest, Suppressed};
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::queue_state::QueueState;
use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::datapath::{Datapath, Outgoing, Sent};
use npcc_pipeline::frame::{FrameBuf, FrameVec};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::Kind;
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;
use npcc_pipeline::wire::checksum;
use npcc_roce::build::{CnpHeader, CnpSpec};
use npcc_roce::key::FlowKey;

use super::event::Event;
use super::flow::{of_qpn, sender_qpn};
use super::{CONTROL, Engine};
use crate::frame::SimFrame;
use crate::wire::{self, Contents};

/// Time between two iterations of a worker, as far as pauses are concerned.
const TURN: Nanos = Nanos::from_micros(2);
/// CNPs that wait to leave, at most.
const RING: usize = 512;
/// THEMIS: shortest time between two CNPs of one flow.
const THEMIS: Nanos = Nanos::from_micros(5);

/// A switch: its packet path, control core, routes and ports.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) path: Datapath<SimFrame, Option<FlowCache>>,
    pub(crate) core: Option<ControlCore>,
    pub(crate) fib: FibReader,
    pub(crate) routes: RouteWriter,
    pub(crate) ports: Vec<Port>,
    /// Port set (bit per port) of the ports with THEMIS.
    pub(crate) themis: u32,
    /// True if it pauses its neighbours (PFC).
    pub(crate) pfc: bool,
    /// Output burst, full but for one slot, so that a port hands out one frame at a time.
    pub(crate) out: Outgoing<SimFrame>,
    /// CNPs that the control core makes in its current call, and the ports they leave by.
    pub(crate) making: VecDeque<(PortId, SimFrame)>,
    pub(crate) cnps: u64,
}

/// One port of a simulated switch.
#[derive(Debug)]
pub(crate) struct Port {
    /// Engine index of its outgoing link.
    pub(crate) link: usize,
    /// Time of its next scheduled [`Port`](super::event::Event::Port).
    pub(crate) wake: Nanos,
    /// Frames of the reported priority that left with CE set, for the report.
    pub(crate) marked: u64,
    /// Depths of its queues, by priority, when last published; `unpublished`: frames that came and went since.
    pub(crate) published: [u64; 8],
    pub(crate) unpublished: u32,
}

impl Engine {
    /// Handles a frame that reached a switch.
    pub(crate) fn switch_receive(&mut self, index: u32, port: u8, frame: SimFrame) {
        let now = self.now;
        let switch = &mut self.switches[index as usize];
        let to = self.record.route_of(index, frame.data());
        let mut burst = FrameVec::default();
        burst.push(frame);
        switch.path.ingress(PortId(port), &mut burst, now);
        if self.watch.0 == index && to == Some(self.watch.1) {
            let depth = switch.path.depth(PortId(self.watch.1), self.watch_priority);
            self.record.depth(depth, now);
        }
        if let Some(to) = to {
            self.publish(index, to);
        }
        match to {
            Some(to) => self.port_turn(index, to),
            // MAC control: a paused port may resume.
            None => self.all_ports(index),
        }
        self.pauses(index, port);
    }

    /// Sends one frame by a port if its link is free and the scheduler finds one.
    pub(crate) fn port_turn(&mut self, index: u32, port: u8) {
        let now = self.now;
        let switch = &mut self.switches[index as usize];
        let link = switch.ports[usize::from(port)].link;
        let free = self.links[link].free_at();
        if free > now {
            if switch.path.frames_queued(PortId(port)) > 0 {
                self.wake_port(index, port, free);
            }
            return;
        }
        let full = switch.out.len();
        switch.path.egress(PortId(port), &mut switch.out, now);
        if switch.out.len() == full {
            return;
        }
        let Some(queued) = switch.out.pop() else {
            return;
        };
        let mut frame = queued.buf;
        switch
            .path
            .sent(PortId(port), Sent::of([frame.data().len()]));
        let ingress = queued.meta.ingress();
        if self.watch == (index, port) {
            let depth = switch.path.depth(PortId(port), self.watch_priority);
            self.record.depth(depth, now);
        }
        self.publish(index, port);
        let switch = &mut self.switches[index as usize];
        if frame.data()[15] & 3 == 3 {
            if queued.meta.priority == self.watch_priority {
                switch.ports[usize::from(port)].marked += 1;
            }
            if switch.themis & PortId(port).bit() != 0 {
                self.themis(index, &mut frame);
            }
        }
        self.put_on(link, frame);
        let switch = &self.switches[index as usize];
        if switch.path.frames_queued(PortId(port)) > 0 {
            let free = self.links[link].free_at();
            self.wake_port(index, port, free);
        }
        if let Some(PortId(ingress)) = ingress.filter(|ingress| ingress.0 != port) {
            self.pauses(index, ingress);
        }
    }

    /// Publishes a port's depth once every `depth_every` frames that come or go, and when nothing waits.
    fn publish(&mut self, index: u32, port: u8) {
        let every = self.scenario.imperfections.depth_every;
        if every <= 1 {
            return;
        }
        let switch = &mut self.switches[index as usize];
        let idle = switch.path.frames_queued(PortId(port)) == 0;
        let state = &mut switch.ports[usize::from(port)];
        state.unpublished += 1;
        if idle || state.unpublished >= every {
            state.unpublished = 0;
            for priority in Priority::all_of(u8::MAX) {
                state.published[priority.index()] = switch.path.depth(PortId(port), priority);
            }
        }
    }

    fn wake_port(&mut self, index: u32, port: u8, time: Nanos) {
        let state = &mut self.switches[index as usize].ports[usize::from(port)];
        if state.wake > time || state.wake <= self.now {
            state.wake = time;
            self.queue.at(time, Event::Port(index, port));
        }
    }

    fn all_ports(&mut self, index: u32) {
        for port in 0..self.switches[index as usize].ports.len() {
            let port = u8::try_from(port).unwrap_or(u8::MAX);
            if self.switches[index as usize]
                .path
                .frames_queued(PortId(port))
                > 0
            {
                self.port_turn(index, port);
            }
        }
    }

    /// Sends the pause frame that is due on this port, if any.
    fn pauses(&mut self, index: u32, port: u8) {
        let now = self.now;
        let switch = &mut self.switches[index as usize];
        if !switch.pfc {
            return;
        }
        if let Some(frame) = switch.path.control_due(PortId(port), now) {
            let link = switch.ports[usize::from(port)].link;
            switch.path.control_sent(PortId(port), &frame, now);
            self.put_on(link, SimFrame::with(&frame.bytes));
        }
    }

    /// Runs an iteration of the worker: pauses are begun, refreshed and ended; ports whose pause ran out resume.
    pub(crate) fn turn(&mut self, index: u32) {
        for port in 0..self.switches[index as usize].ports.len() {
            self.pauses(index, u8::try_from(port).unwrap_or(u8::MAX));
        }
        self.all_ports(index);
        self.queue.at(self.now + TURN, Event::Turn(index));
    }

    /// Runs a tick of the control core on its queues, and sends the CNPs it orders.
    pub(crate) fn control(&mut self, index: u32) {
        let now = self.now;
        let switch = &mut self.switches[index as usize];
        let Switch {
            path,
            core: Some(core),
            fib,
            ports,
            making,
            ..
        } = switch
        else {
            return;
        };
        let cost = self.scenario.control_cost;
        let status = core.status();
        let before = (status.records.get(), status.flows_read.get());
        let made = Cell::new(0);
        let clock = || {
            let records = status.records.get() - before.0;
            let flows = status.flows_read.get() - before.1;
            now + cost.of(records, flows, made.get())
        };
        let queue = &mut self.queue;
        let stale = self.scenario.imperfections.depth_every > 1;
        let level = |port: PortId, priority: Priority| {
            let seen = ports.get(port.index()).filter(|_| stale);
            let depth = seen.map_or_else(
                || path.depth(port, priority),
                |seen| seen.published[priority.index()],
            );
            let counters = path.counters().ports().zip((0u8..).map(PortId));
            let xoff_asserted = counters.fold(0, |set, (of, id)| {
                let asserted = of.flow.asserted.get() & u64::from(priority.bit()) != 0;
                set | if asserted { id.bit() } else { 0 }
            });
            QueueState {
                depth,
                paused: path.counters().of(port).flow.paused_time(priority, now),
                xoff_asserted,
                entered: Some(path.counters().of(port).queues[priority.index()].entered()),
            }
        };
        core.run_call_within(now, &clock, level, &mut |order: CnpRequest| {
            let (port, frame) = build(fib, &order).ok_or(Suppressed::NoNeighbor)?;
            if making.len() >= RING {
                return Err(Suppressed::RingFull);
            }
            made.set(made.get() + 1);
            making.push_back((port, frame));
            if !cost.is_zero() {
                queue.at(clock(), Event::CnpMade(index));
            }
            Ok(())
        });
        // A worker does so in its next iteration.
        path.refresh();
        let next = (now + core.period()).max(clock());
        if cost.is_zero() {
            self.cnps_made(index, usize::MAX);
        }
        let late = self.chance.lateness(&self.scenario.imperfections);
        self.queue.at(next + late, Event::Control(index));
    }

    /// Queues up to `most` CNPs that the control core has made.
    pub(crate) fn cnps_made(&mut self, index: u32, most: usize) {
        let switch = &mut self.switches[index as usize];
        let mut woken = 0u32;
        let most = most.min(switch.making.len());
        for (port, frame) in switch.making.drain(..most) {
            let priority = Priority::new(CONTROL);
            if switch
                .path
                .originate(port, priority, frame, self.now)
                .is_ok()
            {
                woken |= port.bit();
                switch.cnps += 1;
            }
        }
        for port in 0..32u8 {
            if woken & PortId(port).bit() != 0 {
                self.port_turn(index, port);
            }
        }
    }

    /// THEMIS: handles a marked packet that leaves: its sender is signalled, and the mark is cleared.
    fn themis(&mut self, index: u32, frame: &mut SimFrame) {
        let Contents::Packet(packet) = wire::read(frame.data()) else {
            return;
        };
        let Some((flow, false)) =
            of_qpn(packet.dest_qp).filter(|_| packet.class == RoceClass::Data)
        else {
            return;
        };
        let now = self.now;
        let state = &mut self.flows[flow];
        if state
            .signalled
            .is_none_or(|signalled| now.since(signalled) >= THEMIS)
        {
            state.signalled = Some(now);
            let (src, dst) = (state.forward.src, state.forward.dst);
            let order = FlowKey::new(src.into(), dst.into(), packet.dest_qp);
            let switch = &mut self.switches[index as usize];
            // The queue pair of the sender is known from the hosts, as in the THEMIS testbed.
            let built = spec(
                &switch.fib,
                order,
                sender_qpn(crate::num::small(flow as u64)),
                None,
            );
            if let Some((port, cnp)) = built
                && switch
                    .path
                    .originate(port, Priority::new(CONTROL), cnp, now)
                    .is_ok()
            {
                switch.cnps += 1;
                self.wake_port(index, port.0, now);
            }
        }
        let ip = &mut frame.data_mut()[14..34];
        ip[1] &= !3;
        ip[10..12].fill(0);
        let sum = !checksum::sum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Builds the CNP of an order, and returns it with the port it leaves by.
fn build(fib: &FibReader, order: &CnpRequest) -> Option<(PortId, SimFrame)> {
    spec(fib, order.flow, order.sender_qpn, Some(order.ingress))
}

fn spec(
    fib: &FibReader,
    flow: FlowKey,
    sender_qpn: npcc_roce::key::Qpn,
    ingress: Option<PortId>,
) -> Option<(PortId, SimFrame)> {
    let paths = || {
        fib.paths(flow.src())
            .filter(|path| path.kind == Kind::Forward)
    };
    let by_ingress = paths().find(|path| Some(path.port) == ingress);
    let path = by_ingress.or_else(|| paths().next())?;
    let spec = CnpSpec {
        flow,
        sender_qpn,
        dst_mac: path.dst,
        src_mac: path.src,
        vlan: None,
        ip_id: 0,
        header: CnpHeader::default(),
    };
    Some((path.port, SimFrame::with(spec.build().bytes())))
}
