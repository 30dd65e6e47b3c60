//! One connection: the state of both ends, its pending data, and what the report needs.

use std::collections::VecDeque;

use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::{Nanos, Priority};
use npcc_roce::key::Qpn;

use crate::app::Message;
use crate::frame::SimFrame;
use crate::host::RateControl;
use crate::host::np::NotificationPoint;
use crate::host::rc::{RcReceiver, RcSender};
use crate::scenario::Verb;
use crate::wire::{self, Direction, opcode};

/// Most packets between two acknowledgement requests of the sender, besides the one at the end of a message.
const ACK_EVERY: u64 = 16;
/// Time after which the sender requests an acknowledgement anyway, so that a slow sender measures its round trip too.
const ACK_AFTER: Nanos = Nanos::from_micros(50);
/// Longest wait before a slow sender re-evaluates its rate, which may have risen.
const LOOK: Nanos = Nanos::from_micros(100);
/// First queue pair numbers of senders and of receivers; connections count on from there.
const SENDERS: u32 = 0x10_0000;
const RECEIVERS: u32 = 0x20_0000;

/// A burst that has not fully arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burst {
    pub(crate) begun: Nanos,
    pub(crate) end: u64,
}

/// A message of an application, as packets of the connection: `begins` is the first, `ends` is after the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    pub(crate) application: u32,
    pub(crate) message: Message,
    pub(crate) begins: u64,
    pub(crate) ends: u64,
}

impl Carried {
    /// Returns the bytes by which it is shorter than full packets.
    pub(crate) const fn short(&self, mtu: u64) -> u64 {
        ((self.ends - self.begins) * mtu).saturating_sub(self.message.bytes)
    }
}

/// A flow of the scenario: its endpoints, its state and its progress.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) group: usize,
    pub(crate) verb: Verb,
    /// Priority of its data, and their TOS byte.
    pub(crate) priority: Priority,
    pub(crate) tos: u8,
    pub(crate) tx: RcSender,
    pub(crate) rx: RcReceiver,
    pub(crate) rate: Box<dyn RateControl>,
    pub(crate) np: NotificationPoint,
    /// Minimum CNP interval of its receiver; `adaptive`: its CNPs carry a period (DCQCN+).
    pub(crate) cnp_interval: Nanos,
    pub(crate) adaptive: bool,
    /// Addressing from the data's sender to its receiver.
    pub(crate) forward: Direction,
    /// Addressing from the receiver back to the sender.
    pub(crate) back: Direction,
    /// Packets per message; `base`: count of the first packet of the first message.
    pub(crate) message: u64,
    pub(crate) base: u64,
    pub(crate) mtu: usize,
    /// WRITE: packets that may be sent and not acknowledged; `None` if there is no limit.
    pub(crate) window: Option<u64>,
    /// READ: messages that may be requested and not received.
    pub(crate) reads: u64,
    /// True while it is in its host's `ready` heap.
    pub(crate) armed: bool,
    pub(crate) next_at: Nanos,
    /// Bits of pacing still to be earned at `next_at`, at the rate of that time.
    pub(crate) debt: f64,
    /// Bytes that the rate limiter sends back to back, those of its current burst, and the time from which that is paid; see
    /// [`Flow::pace`].
    pub(crate) limiter: u64,
    pub(crate) burst: u64,
    pub(crate) burst_from: Nanos,
    /// Periods in CNPs that have arrived and do not have an effect yet.
    pub(crate) reacting: VecDeque<Option<Nanos>>,
    /// Packets whose acknowledgement gives a round-trip time, and when they were sent.
    pub(crate) timed: VecDeque<(u64, Nanos)>,
    /// Time of the last acknowledgement request.
    pub(crate) ack_requested: Nanos,
    /// True if its path crosses the port of the reported queue.
    pub(crate) crosses: bool,
    pub(crate) bursts: VecDeque<Burst>,
    /// Messages of an application that are not acknowledged; the first `arrived` of them are at the receiver.
    pub(crate) carries: VecDeque<Carried>,
    pub(crate) arrived: usize,
    /// Bytes by which the delivered messages were shorter than full packets, and those before goodput was counted.
    pub(crate) short: u64,
    pub(crate) short_before: u64,
    /// READ: packets requested; `progress`: when the last expected one arrived.
    pub(crate) requested: u64,
    pub(crate) progress: Nanos,
    /// READ: total packets the requester wants.
    pub(crate) wanted: u64,
    /// Packets delivered in order before goodput was counted.
    pub(crate) delivered_before: u64,
    /// THEMIS: time of the last CNP from the switch to its sender.
    pub(crate) signalled: Option<Nanos>,
}

/// Returns the queue pair of connection `index` at the data's sender.
pub(crate) const fn sender_qpn(index: u32) -> Qpn {
    Qpn::new(SENDERS + index)
}

/// Returns the queue pair of connection `index` at the data's receiver.
pub(crate) const fn receiver_qpn(index: u32) -> Qpn {
    Qpn::new(RECEIVERS + index)
}

/// Returns the connection that a packet to this queue pair belongs to, and whether the queue pair is the data sender's.
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
    /// Returns true if the sender has a packet to send and its window permits it.
    pub(crate) fn can_send(&self) -> bool {
        let out = self.tx.outstanding();
        let fits = match self.verb {
            Verb::Write => {
                let of_rate = self.rate.window();
                of_rate.is_none_or(|bytes| out * (self.mtu as u64) < bytes)
                    && self.window.is_none_or(|packets| out < packets)
            }
            Verb::Read => true,
        };
        fits && self.tx.is_ready()
    }

    /// Returns the number of packets between two acknowledgement requests: a quarter of a small window, so that a full one never waits for an
    /// answer that nobody requested.
    fn ack_every(&self) -> u64 {
        self.window
            .map_or(ACK_EVERY, |packets| (packets / 4).clamp(1, ACK_EVERY))
    }

    /// Returns the first packet of the message that this one is of, the packet after its last, and its bytes.
    fn message_of(&self, packet: u64) -> (u64, u64, u64) {
        let mtu = self.mtu as u64;
        let place = self.carries.partition_point(|one| one.ends <= packet);
        if let Some(one) = self.carries.get(place).filter(|one| one.begins <= packet) {
            return (one.begins, one.ends, one.message.bytes);
        }
        match packet.checked_sub(self.base) {
            Some(after) if self.carries.is_empty() => {
                let begins = packet - after % self.message;
                (begins, begins + self.message, self.message * mtu)
            }
            // The packet that warms the connection up.
            _ => (packet, packet + 1, mtu),
        }
    }

    /// Builds the next data packet and schedules the one after it.
    pub(crate) fn data(&mut self, now: Nanos) -> Option<SimFrame> {
        let packet = self.tx.take(now)?;
        let (begins, ends, bytes) = self.message_of(packet);
        let place = match (packet == begins, packet + 1 == ends) {
            (true, true) => 3,
            (true, false) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        // The last packet of a message may be shorter, by whole words: a pad is not modelled.
        let left = bytes.saturating_sub((packet - begins) * self.mtu as u64);
        let payload = self
            .mtu
            .min(usize::try_from(left.next_multiple_of(4)).unwrap_or(self.mtu));
        let write = self.verb == Verb::Write;
        let silent = now.since(self.ack_requested) >= ACK_AFTER;
        let every = self.ack_every();
        let ack = write && (place >= 2 || packet % every == every - 1 || silent);
        let reth = wire::reth(crate::num::small(bytes));
        let aeth = wire::aeth(false, 0);
        let (code, extended): (u8, &[u8]) = match (write, place) {
            (true, 0 | 3) => (opcode::WRITE[place], &reth),
            (true, _) => (opcode::WRITE[place], &[]),
            (false, 1) => (opcode::RESPONSE[place], &[]),
            (false, _) => (opcode::RESPONSE[place], &aeth),
        };
        let frame = wire::packet(
            &self.forward,
            self.tos,
            code,
            packet,
            ack,
            extended,
            payload,
        );
        if ack {
            self.ack_requested = now;
            self.timed.push_back((packet, now));
        }
        let wire = u64::from(wire_len(frame.data().len()));
        self.rate.sent(wire, now);
        self.pace(wire, now);
        Some(frame)
    }

    /// Schedules the packet after one of `wire` bytes: at once within a burst of the limiter, and when all of the burst is paid after it.
    fn pace(&mut self, wire: u64, now: Nanos) {
        if self.limiter == 0 {
            // A delayed host may catch up by 2 us, not more.
            let due = self.next_at.max(now.since(Nanos(2_000)));
            self.owe((wire * 8) as f64, due, now);
            return;
        }
        if self.burst == 0 {
            // Bursts of others delay it by less than the time of one of its own, which it may catch up with.
            let late = (self.limiter * 8) as f64 / self.rate.rate(now).max(1e-6);
            self.burst_from = self.next_at.max(now.since(Nanos(crate::num::whole(late))));
        }
        self.burst += wire;
        if self.burst >= self.limiter {
            let bits = (std::mem::take(&mut self.burst) * 8) as f64;
            self.owe(bits, self.burst_from, now);
        }
    }

    /// Returns the time of the next packet of a connection that had none to send until now: idle time earns nothing, and a burst that began
    /// before and is paid by now is over.
    pub(crate) fn resume(&mut self, now: Nanos) -> Nanos {
        if self.limiter > 0 {
            let paid = self.rate.rate(now) * now.since(self.burst_from).0 as f64;
            if (self.burst * 8) as f64 <= paid {
                self.burst = 0;
            }
            self.next_at = self.next_at.max(now);
        }
        self.next_at.max(now)
    }

    /// Sets `next_at` to when `bits` are earned counting from `from`, at most [`LOOK`] later; the rest stays in `debt`.
    fn owe(&mut self, bits: f64, from: Nanos, now: Nanos) {
        let rate = self.rate.rate(now).max(1e-6);
        let gap = bits / rate;
        let look = LOOK.0 as f64;
        self.debt = if gap > look { bits - look * rate } else { 0.0 };
        self.next_at = from + Nanos(crate::num::whole(gap.min(look)));
    }

    /// Returns true if its pacing debt is paid; otherwise `next_at` is when to check again.
    pub(crate) fn has_earned(&mut self, now: Nanos) -> bool {
        if self.debt <= 0.0 {
            return true;
        }
        // With bursts, what it waited for others since is earned too.
        let from = if self.limiter > 0 { self.next_at } else { now };
        self.owe(self.debt, from, now);
        false
    }

    /// READ: builds the next request, while fewer than `reads` messages are outstanding.
    pub(crate) fn request(&mut self) -> Option<SimFrame> {
        let ahead = self.requested - self.rx.expected();
        if self.requested >= self.wanted || ahead >= self.reads * self.message {
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

    /// READ: builds a request for these packets, for the first time or again.
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
