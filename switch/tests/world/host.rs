//! Far end of a link: a host with connections, which obeys pauses and reacts to CNPs; or one that floods, or pauses without end.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::Mac;

use super::packets::{self, Link, Way};

/// Longest gap, as a multiple of the connection's own, to which CNPs slow it down.
const SLOWEST: u64 = 64;

/// Connection, or data without one, from the host at one port to that at another.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    pub from: usize,
    pub to: usize,
    /// Payload of a frame, and ns from one to the next.
    pub len: usize,
    pub gap: u64,
    pub until: u64,
    /// True if REQ and REP of the connection manager come before the data.
    pub managed: bool,
    /// True if the receiver answers.
    pub answers: bool,
    /// Priority of the data: 3, or a lossy one that the configuration reaches by eight times its number as DSCP.
    pub priority: u8,
    /// Worker that receives the data, if it matters; otherwise the card's hash decides.
    pub by: Option<usize>,
}

impl Default for Traffic {
    /// 1,024 bytes a microsecond (8.7 Gb/s) for 2 ms, with answers, set up without the connection manager.
    fn default() -> Traffic {
        Traffic {
            from: 0,
            to: 1,
            len: 1_024,
            gap: 1_000,
            until: 2 * super::MS,
            managed: false,
            answers: true,
            priority: 3,
            by: None,
        }
    }
}

/// Connection from a host to another, by its index in the world.
#[derive(Debug)]
pub struct Flow {
    /// Ports of the sender and the receiver.
    pub from: usize,
    pub to: usize,
    pub sender: u32,
    pub receiver: u32,
    /// Communication ID, if it is set up by the connection manager: then no port shows its queue pairs.
    pub id: Option<u32>,
    /// True once the sender has got the REP.
    pub connected: bool,
    /// Bytes of payload of a frame, and ns from one to the next at full speed.
    pub len: usize,
    pub gap: u64,
    /// Present gap: CNPs double it.
    pub now_gap: u64,
    /// Time of the next frame; `None` if it sends no more.
    pub next: Option<u64>,
    pub until: u64,
    /// True if the receiver answers every fourth packet.
    pub answers: bool,
    /// Priority of the data.
    pub priority: u8,
    pub sent: u32,
    /// Number expected next by the receiver, and packets received.
    pub expected: u32,
    pub received: u32,
    /// Time at which the first was received.
    pub first_at: Option<u64>,
    /// Times at which its sender got a CNP.
    pub cnps: Vec<u64>,
}

impl Flow {
    /// UDP source port of both directions.
    pub fn port(&self) -> u16 {
        match self.id {
            Some(id) => 0xc000 | (id.wrapping_mul(0x9e37) >> 3) as u16 & 0x3fff,
            None => packets::port(self.sender, self.receiver),
        }
    }

    /// Slows down as after a CNP.
    pub fn slow_down(&mut self, now: u64) {
        self.cnps.push(now);
        self.now_gap = (self.now_gap * 2).min(self.gap * SLOWEST);
    }

    fn step(&mut self, now: u64) {
        self.now_gap = (self.now_gap - self.now_gap / 128).max(self.gap);
        let next = now + self.now_gap;
        self.next = (next < self.until).then_some(next);
    }
}

/// Maker of the frame with this number.
pub type Forge = Box<dyn FnMut(u64) -> Vec<u8>>;

/// Frames that a host sends at a fixed pace, whatever comes back.
pub struct Flood {
    pub forge: Forge,
    /// Ps from one frame to the next.
    pub gap: u64,
    /// Time in ps of the next frame, and of the end.
    pub next: u64,
    pub until: u64,
    pub number: u64,
}

/// Host at the far end of a port's link.
pub struct Host {
    pub port: usize,
    pub address: Ipv4Addr,
    pub link: Link,
    /// Bit/s of its own side.
    pub rate: u64,
    /// True if it obeys pauses.
    pub obeys: bool,
    /// Time in ps at which its wire is free.
    free_at: u64,
    paused: [u64; 8],
    /// Answers to be sent, before data.
    pub answers: VecDeque<Vec<u8>>,
    pub floods: Vec<Flood>,
    /// Priorities that it pauses, and until when it repeats that.
    pub pausing: Option<(u8, u64)>,
    next_pause: u64,
    /// Time of its next turn that is in the world's list of events.
    pub planned: Option<u64>,
    /// PFC frames heard: with a class paused, and with a class resumed.
    pub heard: (u64, u64),
    /// Time since which priority 3 is paused without an XON, and the longest time after one's beginning at which data left.
    xoff_since: Option<u64>,
    pub under_xoff: u64,
}

/// Frame that a host sends, and the time at which its last bit leaves.
pub type Sending = (u64, Vec<u8>);

impl Host {
    pub fn new(port: usize, address: Ipv4Addr, link: Link, rate: u64) -> Host {
        Host {
            port,
            address,
            link,
            rate,
            obeys: true,
            free_at: 0,
            paused: [0; 8],
            answers: VecDeque::new(),
            floods: Vec::new(),
            pausing: None,
            next_pause: 0,
            planned: None,
            heard: (0, 0),
            xoff_since: None,
            under_xoff: 0,
        }
    }

    /// Way of a packet from this host.
    pub fn way(&self, to: Ipv4Addr) -> Way {
        Way {
            link: self.link,
            from: self.address,
            to,
        }
    }

    /// Pauses the switch's priorities in `classes` from now to `until`.
    pub fn pause(&mut self, classes: u8, now: u64, until: u64) {
        self.pausing = Some((classes, until));
        self.next_pause = now;
    }

    /// Forgets pauses in both directions: the link went down or came up.
    pub fn link_changed(&mut self) {
        self.paused = [0; 8];
        (self.pausing, self.xoff_since) = (None, None);
    }

    /// Takes note of a PFC frame.
    pub fn hear(&mut self, quanta: [Option<u16>; 8], now: u64) {
        let named = |paused: bool| {
            quanta
                .iter()
                .any(|quanta| quanta.is_some_and(|quanta| (quanta > 0) == paused))
        };
        self.heard.0 += u64::from(named(true));
        self.heard.1 += u64::from(named(false));
        if let Some(quanta) = quanta[3] {
            self.xoff_since = (quanta > 0).then(|| self.xoff_since.unwrap_or(now));
        }
        if !self.obeys {
            return;
        }
        for (until, quanta) in self.paused.iter_mut().zip(quanta) {
            if let Some(quanta) = quanta {
                *until = now + u64::from(quanta) * 512 * 1_000_000_000 / self.rate;
            }
        }
    }

    /// Sends the next frame that is due, if the wire is free; returns it, and the time of the next turn.
    pub fn turn(
        &mut self,
        flows: &mut [Flow],
        hosts: &[Ipv4Addr],
        now: u64,
    ) -> (Option<Sending>, Option<u64>) {
        if self.free_at > now * 1_000 {
            return (None, Some(self.free_at.div_ceil(1_000)));
        }
        let frame = self.next_frame(flows, hosts, now);
        let sent = frame.map(|frame| {
            let bits = u64::from(wire_len(frame.len())) * 8;
            self.free_at = self.free_at.max(now * 1_000) + bits * 1_000_000_000_000 / self.rate;
            (self.free_at.div_ceil(1_000), frame)
        });
        let next = self
            .due(flows)
            .map(|due| due.max(self.free_at.div_ceil(1_000)).max(now + 1));
        (sent, next)
    }

    /// Time at which it has a frame to send.
    fn due(&self, flows: &[Flow]) -> Option<u64> {
        let own = flows.iter().filter(|flow| flow.from == self.port);
        let until = |flow: &Flow| self.paused[usize::from(flow.priority)];
        let data = own.filter_map(|flow| Some(flow.next?.max(until(flow))));
        let floods = self.floods.iter().filter(|flood| flood.next < flood.until);
        let floods = floods.map(|flood| flood.next.div_ceil(1_000).max(self.paused[3]));
        let answers = (!self.answers.is_empty()).then_some(0);
        let pause = self.pausing.map(|_| self.next_pause);
        data.chain(floods).chain(answers).chain(pause).min()
    }

    fn next_frame(&mut self, flows: &mut [Flow], hosts: &[Ipv4Addr], now: u64) -> Option<Vec<u8>> {
        if let Some(frame) = self.pause_frame(now) {
            return Some(frame);
        }
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let paused = self.paused[3] > now;
        let mut floods = self.floods.iter_mut();
        if let Some(flood) =
            floods.find(|flood| !paused && flood.next <= now * 1_000 && flood.next < flood.until)
        {
            flood.next += flood.gap;
            flood.number += 1;
            return Some((flood.forge)(flood.number - 1));
        }
        let may_send = |flow: &&mut Flow| self.paused[usize::from(flow.priority)] <= now;
        let own = flows.iter_mut().filter(|flow| flow.from == self.port);
        let own = own.filter(may_send);
        let ready = own.filter(|flow| flow.next.is_some_and(|next| next <= now));
        let flow = ready.min_by_key(|flow| flow.next)?;
        flow.step(now);
        flow.sent += 1;
        if flow.priority == 3 {
            let under = self.xoff_since.map_or(0, |since| now - since);
            self.under_xoff = self.under_xoff.max(under);
        }
        let way = self.way(hosts[flow.to]);
        Some(packets::data_in(
            flow.priority,
            way,
            (flow.receiver, flow.port()),
            flow.sent - 1,
            flow.len,
        ))
    }

    /// Pause frame that is due: repeated every 100 us, and ended by one with a time of 0.
    fn pause_frame(&mut self, now: u64) -> Option<Vec<u8>> {
        let (classes, until) = self.pausing.filter(|_| self.next_pause <= now)?;
        self.next_pause = now + 100_000;
        let over = now >= until;
        if over {
            self.pausing = None;
        }
        let quanta = if over { 0 } else { u16::MAX };
        Some(super::pfc(self.link.host, classes, quanta))
    }
}

/// Address of the host, and of the switch, on a port's link.
pub fn link(port: usize, switch: Mac) -> Link {
    let host = Mac([2, 0, 0, 0, u8::try_from(port + 1).unwrap_or(0), 3]);
    Link { host, switch }
}
