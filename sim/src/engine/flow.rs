//! One connection: both ends' state, what it has to send, and what is remembered for the report.

use std::collections::VecDeque;

use npcc_cnp::key::Qpn;
use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::Nanos;

use crate::frame::SimFrame;
use crate::host::RateControl;
use crate::host::np::NotificationPoint;
use crate::host::rc::{RcReceiver, RcSender};
use crate::scenario::Verb;
use crate::wire::{self, Direction, opcode};

/// Every so many packets the sender asks for an acknowledgement, besides the end of a message.
const ACK_EVERY: u64 = 16;
/// And when it has not asked for this long, so that a slow sender measures its round trip too.
const ACK_AFTER: Nanos = Nanos::from_micros(50);
/// A slow sender looks again after this time, as its rate may have risen.
const LOOK: Nanos = Nanos::from_micros(100);
/// READ: messages requested ahead.
const READ_AHEAD: u64 = 64;
/// First queue pair numbers of senders and of receivers; connections count on from there.
const SENDERS: u32 = 0x10_0000;
const RECEIVERS: u32 = 0x20_0000;

/// A burst of which not everything has arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burst {
    pub(crate) begun: Nanos,
    pub(crate) end: u64,
}

/// A flow of the scenario: where it goes, and how far it has come.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) group: usize,
    pub(crate) verb: Verb,
    pub(crate) tx: RcSender,
    pub(crate) rx: RcReceiver,
    pub(crate) rate: Box<dyn RateControl>,
    pub(crate) np: NotificationPoint,
    /// Shortest time between two CNPs of its receiver, and whether they tell a period (DCQCN+).
    pub(crate) cnp_interval: Nanos,
    pub(crate) adaptive: bool,
    /// From data's sender to its receiver.
    pub(crate) forward: Direction,
    /// Back.
    pub(crate) back: Direction,
    /// Packets of a message, and the count of the first packet of the first one.
    pub(crate) message: u64,
    pub(crate) base: u64,
    pub(crate) mtu: usize,
    /// In its host's list of those with something to send.
    pub(crate) armed: bool,
    pub(crate) next_at: Nanos,
    /// Bits it must still earn then, at the rate it has then.
    pub(crate) debt: f64,
    /// Packets whose acknowledgement gives a round-trip time, and when they were sent.
    pub(crate) timed: VecDeque<(u64, Nanos)>,
    /// When an acknowledgement was last asked for.
    pub(crate) asked: Nanos,
    /// Its path goes through the reported queue.
    pub(crate) crosses: bool,
    pub(crate) bursts: VecDeque<Burst>,
    /// READ: packets requested, and when the last one that was expected came.
    pub(crate) requested: u64,
    pub(crate) progress: Nanos,
    /// READ: packets the requester wants in all.
    pub(crate) wanted: u64,
    /// Delivered in order before the measured time.
    pub(crate) delivered_before: u64,
    /// THEMIS: when its sender was last told by the switch.
    pub(crate) told: Option<Nanos>,
}

/// The queue pair of connection `index` at the data's sender.
pub(crate) const fn sender_qpn(index: u32) -> Qpn {
    Qpn::new(SENDERS + index)
}

/// The queue pair of a flow's receiver.
pub(crate) const fn receiver_qpn(index: u32) -> Qpn {
    Qpn::new(RECEIVERS + index)
}

/// The connection a packet to this queue pair belongs to, and whether it reached the data's sender.
pub(crate) const fn of_qpn(qpn: Qpn) -> Option<(usize, bool)> {
    let qpn = qpn.get();
    if qpn >= RECEIVERS {
        Some(((qpn - RECEIVERS) as usize, false))
    } else if qpn >= SENDERS {
        Some(((qpn - SENDERS) as usize, true))
    } else {
        None
    }
}

impl Flow {
    /// Whether the sender has a packet that its window lets go.
    pub(crate) fn can_send(&self) -> bool {
        let window = match self.verb {
            Verb::Write => self.rate.window(),
            Verb::Read => None,
        };
        self.tx.is_ready()
            && window.is_none_or(|window| self.tx.flying() * (self.mtu as u64) < window)
    }

    /// The next data packet.
    pub(crate) fn data(&mut self, now: Nanos) -> Option<SimFrame> {
        let packet = self.tx.take(now)?;
        let place = if packet < self.base {
            3
        } else {
            let at = (packet - self.base) % self.message;
            match (at == 0, at + 1 == self.message) {
                (true, true) => 3,
                (true, false) => 0,
                (false, true) => 2,
                (false, false) => 1,
            }
        };
        let write = self.verb == Verb::Write;
        let silent = now.since(self.asked) >= ACK_AFTER;
        let ack = write && (place >= 2 || packet % ACK_EVERY == ACK_EVERY - 1 || silent);
        let reth = wire::reth(crate::num::small(self.message * self.mtu as u64));
        let aeth = wire::aeth(false, 0);
        let (code, extended): (u8, &[u8]) = match (write, place) {
            (true, 0 | 3) => (opcode::WRITE[place], &reth),
            (true, _) => (opcode::WRITE[place], &[]),
            (false, 1) => (opcode::RESPONSE[place], &[]),
            (false, _) => (opcode::RESPONSE[place], &aeth),
        };
        let frame = wire::packet(
            &self.forward,
            wire::DATA_TOS,
            code,
            packet,
            ack,
            extended,
            self.mtu,
        );
        if ack {
            self.asked = now;
            self.timed.push_back((packet, now));
        }
        let wire = u64::from(wire_len(frame.data().len()));
        self.rate.sent(wire, now);
        // A host that was held up may catch up by a few packets, not more.
        let due = self.next_at.max(now.since(Nanos(2_000)));
        self.owe((wire * 8) as f64, due, now);
        Some(frame)
    }

    /// Waits until `bits` are earned from `from` on, and no longer than until it should look again.
    fn owe(&mut self, bits: f64, from: Nanos, now: Nanos) {
        let rate = self.rate.rate(now).max(1e-6);
        let gap = bits / rate;
        let look = LOOK.0 as f64;
        self.debt = if gap > look { bits - look * rate } else { 0.0 };
        self.next_at = from + Nanos(crate::num::whole(gap.min(look)));
    }

    /// Whether its turn has come; if not, `next_at` is when it should look again.
    pub(crate) fn has_earned(&mut self, now: Nanos) -> bool {
        if self.debt <= 0.0 {
            return true;
        }
        self.owe(self.debt, now, now);
        false
    }

    /// READ: the next request, while fewer than enough are on their way.
    pub(crate) fn request(&mut self) -> Option<SimFrame> {
        let ahead = self.requested - self.rx.expected();
        if self.requested >= self.wanted || ahead >= READ_AHEAD * self.message {
            return None;
        }
        let packets = self.message.min(self.wanted - self.requested);
        let packets = if self.requested < self.base {
            self.base - self.requested
        } else {
            packets
        };
        let frame = self.request_for(self.requested, packets);
        self.requested += packets;
        Some(frame)
    }

    /// READ: asks for these packets, perhaps again.
    pub(crate) fn request_for(&self, first: u64, packets: u64) -> SimFrame {
        let length = crate::num::small(packets * self.mtu as u64);
        wire::packet(
            &self.back,
            wire::CONTROL_TOS,
            opcode::READ,
            first,
            false,
            &wire::reth(length),
            0,
        )
    }
}
