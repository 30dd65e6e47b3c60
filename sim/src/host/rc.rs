//! Reliable connection: selects the packet to send next, tracks acknowledgements, and retransmits.
//!
//! Packets are counted from 0 for ever here; the wire carries the low 24 bits, and [`unwrap`] recovers the count.
//! Go-back-N: the receiver takes packets in order only, sends a NAK once per gap, and the sender goes back to it. Selective
//! repeat (as IRN, SIGCOMM'18): the receiver keeps what is beyond a gap; a NAK names the gap's first packet and the one that
//! revealed it, and the sender repeats what lies between. READ runs on the same halves: the responder sends, and may send
//! only what was requested.

use std::collections::{BTreeSet, VecDeque};

use npcc_pipeline::units::Nanos;
use serde::Deserialize;

/// Retransmission scheme for missing packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Go-back-N: everything from the missing packet on is sent again.
    #[default]
    GoBackN,
    /// Selective repeat: only the missing packets are sent again.
    Selective,
}

/// Returns the packet count nearest to `near` that has these low 24 bits.
#[must_use]
pub fn unwrap(psn: u32, near: u64) -> u64 {
    const SPAN: u64 = 1 << 24;
    let guess = (near & !(SPAN - 1)) | u64::from(psn);
    if guess + SPAN / 2 < near {
        guess + SPAN
    } else if guess > near + SPAN / 2 && guess >= SPAN {
        guess - SPAN
    } else {
        guess
    }
}

/// The sending half of a connection.
#[derive(Debug, Clone, Default)]
pub struct RcSender {
    next: u64,
    acked: u64,
    limit: u64,
    high: u64,
    again: VecDeque<u64>,
    progress: Nanos,
    /// Packets sent more than once.
    pub repeated: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
}

impl RcSender {
    /// Allows `packets` more packets to be sent.
    pub const fn offer(&mut self, packets: u64) {
        self.limit = self.limit.saturating_add(packets);
    }

    /// Returns the total number of packets that may be sent.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the count before which all packets are acknowledged.
    #[must_use]
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns the number of packets sent and not acknowledged.
    #[must_use]
    pub const fn flying(&self) -> u64 {
        self.high.saturating_sub(self.acked)
    }

    /// Returns the number of packets sent and not acknowledged that are not to be sent again: what fills a window. After a gap or a timeout
    /// that is less than [`RcSender::flying`], or a full window could not be repaired.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        let repeats = self.again.back().is_some_and(|last| *last >= self.acked);
        if repeats {
            0
        } else {
            self.next.saturating_sub(self.acked)
        }
    }

    /// Returns true if there is a packet to send.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.again.is_empty() || self.next < self.limit
    }

    /// Takes the packet to send now.
    pub fn take(&mut self, now: Nanos) -> Option<u64> {
        while let Some(packet) = self.again.pop_front() {
            if packet >= self.acked {
                self.repeated += 1;
                return Some(packet);
            }
        }
        if self.next >= self.limit {
            return None;
        }
        let packet = self.next;
        self.next += 1;
        if packet < self.high {
            self.repeated += 1;
        } else {
            self.high = self.next;
        }
        // Restarts the timeout: a sender slowed down to an occasional packet waits for the answer to its last one.
        self.progress = now;
        Some(packet)
    }

    /// Handles an ACK: all packets up to and including `packet` have arrived.
    pub fn ack(&mut self, packet: u64, now: Nanos) {
        if packet >= self.acked && packet < self.high {
            self.acked = packet + 1;
            self.next = self.next.max(self.acked);
            self.progress = now;
        }
    }

    /// Handles a NAK: `missing` has not arrived though `seen` has; all before `missing` have.
    pub fn nak(&mut self, missing: u64, seen: u64, recovery: Recovery, now: Nanos) {
        if missing < self.acked || missing >= self.high {
            return;
        }
        self.acked = missing;
        self.progress = now;
        match recovery {
            Recovery::GoBackN => self.next = missing,
            Recovery::Selective => {
                let from = self
                    .again
                    .back()
                    .map_or(missing, |last| (last + 1).max(missing));
                self.again.extend(from..seen.min(self.high));
            }
        }
    }

    /// READ: handles a request for `packets` packets from `first` on; what was answered before is answered again.
    pub fn request(&mut self, first: u64, packets: u64, now: Nanos) {
        if first < self.next {
            self.next = first;
        }
        self.acked = self.acked.max(first.min(self.high));
        self.limit = self.limit.max(first + packets);
        self.progress = now;
    }

    /// Goes back to the first unacknowledged packet when nothing came back for `patience`; returns true if it did.
    pub fn expire(&mut self, patience: Nanos, now: Nanos) -> bool {
        let late = self.flying() > 0 && now.since(self.progress) >= patience;
        if late {
            self.again.clear();
            self.next = self.acked;
            self.progress = now;
            self.timeouts += 1;
        }
        late
    }
}

/// Response of the receiver to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Acknowledges all packets up to and including this one.
    Ack(u64),
    /// Reports a gap: the first packet is missing, the second one revealed it.
    Nak(u64, u64),
}

/// The receiving half of a connection.
#[derive(Debug, Clone, Default)]
pub struct RcReceiver {
    expected: u64,
    beyond: BTreeSet<u64>,
    signalled: Option<u64>,
    /// Packets received again, or out of order and not kept.
    pub wasted: u64,
    /// NAKs sent.
    pub naks: u64,
}

impl RcReceiver {
    /// Returns the first packet not yet received: all before it were delivered, in order.
    #[must_use]
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    /// Handles a received packet and returns the response due; `ack` is true when the packet requests one.
    pub fn receive(&mut self, packet: u64, ack: bool, recovery: Recovery) -> Option<Answer> {
        if packet < self.expected {
            self.wasted += 1;
            return ack.then(|| Answer::Ack(self.expected - 1));
        }
        if packet > self.expected {
            let keep = recovery == Recovery::Selective;
            if !(keep && self.beyond.insert(packet)) {
                self.wasted += 1;
            }
            // Go-back-N sends one NAK per gap; selective repeat sends one for each newly revealed gap.
            let news = if keep { packet } else { self.expected };
            if self.signalled == Some(news) {
                return None;
            }
            let fresh = self
                .signalled
                .is_none_or(|signalled| signalled < self.expected || !keep);
            let gap_grew = keep && !self.beyond.contains(&(packet - 1));
            if !fresh && !gap_grew {
                return None;
            }
            self.signalled = Some(news);
            self.naks += 1;
            return Some(Answer::Nak(self.expected, packet));
        }
        self.expected += 1;
        while self.beyond.remove(&self.expected) {
            self.expected += 1;
        }
        self.signalled = None;
        ack.then(|| Answer::Ack(self.expected - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_are_found_again_around_the_wrap() {
        for near in [0u64, 5, (1 << 24) - 1, 1 << 24, (1 << 24) + 7, 1 << 30] {
            for count in near.saturating_sub(1_000)..near + 1_000 {
                assert_eq!(
                    unwrap(u32::try_from(count & 0xff_ffff).unwrap(), near),
                    count
                );
            }
        }
    }

    /// Sends `total` packets over a path that loses a packet when `lost` returns true, and returns what was sent.
    fn run(recovery: Recovery, total: u64, mut lost: impl FnMut() -> bool) -> (u64, u64) {
        let (mut sender, mut receiver) = (RcSender::default(), RcReceiver::default());
        sender.offer(total);
        let mut path = VecDeque::new();
        let mut now = 0;
        while receiver.expected() < total && now < 200_000 {
            now += 1;
            if let Some(packet) = sender.take(Nanos(now)) {
                path.push_back((now + 20, packet));
            }
            while path.front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = path.pop_front().unwrap();
                if lost() {
                    continue;
                }
                match receiver.receive(packet, packet % 4 == 3, recovery) {
                    Some(Answer::Ack(packet)) => sender.ack(packet, Nanos(now)),
                    Some(Answer::Nak(missing, seen)) => {
                        sender.nak(missing, seen, recovery, Nanos(now));
                    }
                    None => {}
                }
            }
            sender.expire(Nanos(200), Nanos(now));
        }
        (receiver.expected(), sender.repeated)
    }

    proptest! {
        #[test]
        fn everything_arrives_in_order_whatever_is_lost(seed: u64, one_in in 4u64..50, selective: bool) {
            let mut rng = crate::rng::Rng::new(seed);
            let recovery = if selective { Recovery::Selective } else { Recovery::GoBackN };
            prop_assert_eq!(run(recovery, 400, || rng.below(one_in) == 0).0, 400);
        }
    }

    #[test]
    fn without_loss_nothing_is_repeated_and_selective_repeats_less() {
        assert_eq!(run(Recovery::GoBackN, 400, || false), (400, 0));
        let repeated = |recovery| {
            let mut arrivals = 0;
            let lost = || {
                arrivals += 1;
                [51, 151, 251].contains(&arrivals)
            };
            run(recovery, 400, lost).1
        };
        assert!(repeated(Recovery::GoBackN) > 20 * 3);
        assert_eq!(repeated(Recovery::Selective), 3);
    }

    #[test]
    fn a_request_extends_and_a_repeated_one_goes_back() {
        let mut responder = RcSender::default();
        responder.request(0, 4, Nanos(0));
        let sent: Vec<u64> = std::iter::from_fn(|| responder.take(Nanos(1))).collect();
        assert_eq!(sent, [0, 1, 2, 3]);
        responder.request(2, 2, Nanos(2));
        assert_eq!(responder.take(Nanos(3)), Some(2));
        assert_eq!(responder.repeated, 1);
    }
}
