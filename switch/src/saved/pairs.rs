//! Pairs for the next process, which has packets confirm each of them before it signals any sender.
//!
//! Law: pairs that the process before knew and that no packet contradicted are left again for a time after the start ([`CARRIED`]), though no
//! packet has confirmed them yet: a second restart soon after the first loses nothing.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use npcc_api::pairs::ListedPair;
use npcc_cnp::table::{FlowSnapshot, FlowView};
use npcc_heap::records::Ring;
use npcc_roce::pair::Evidence;

use super::memory;
use npcc_engine::store::Store;

/// Largest number of pairs that are left: 21 MB of memory, once they are written.
const MOST: usize = 1 << 18;
/// Time after the start for which a pair that no packet confirms is left anew.
const CARRIED: Duration = Duration::from_secs(600);
/// Pause between two lists, as a multiple of the time it took to make the last one.
const SHARE: u32 = 20;

/// Number of words of a pair.
pub const WORDS: usize = 5;
const WHAT: (&str, &str) = (
    "pairs",
    "5 words a pair: source and destination as IPv6, receiver's queue pair << 32 | sender's",
);

type Words = [u64; WORDS];

/// Pairs of this process, and the ring in which they are left.
#[derive(Debug)]
pub struct Pairs {
    ring: Ring,
    /// Pairs that the process before knew and that no flow of this process has yet.
    carried: HashMap<[u64; WORDS - 1], HashMap<u32, u32>>,
    until: Instant,
    due: Instant,
    last: Vec<u64>,
}

impl Pairs {
    /// Opens the ring and returns the pairs that the process before left, to be suggested.
    ///
    /// # Errors
    /// The ring cannot be made.
    pub(super) fn open(
        store: &Store,
        note: &mut dyn FnMut(String),
    ) -> io::Result<(Pairs, Vec<ListedPair>)> {
        let ring = memory::ring(store, WHAT, (2, MOST * WORDS), note)?;
        Ok(Pairs::of(ring, Instant::now()))
    }

    /// Continues the ring of the process before, from `now` on; returns the pairs in it too, to be suggested.
    #[must_use]
    pub fn of(ring: Ring, now: Instant) -> (Pairs, Vec<ListedPair>) {
        let list = ring.newest().map_or_else(Vec::new, |record| record.words);
        let (words, _) = list.as_chunks::<WORDS>();
        let mut carried: HashMap<[u64; WORDS - 1], HashMap<u32, u32>> = HashMap::new();
        for [ends @ .., qps] in words {
            let (receiver, sender) = parted(*qps);
            carried.entry(*ends).or_default().insert(receiver, sender);
        }
        let pairs = Pairs {
            ring,
            carried,
            until: now + CARRIED,
            due: now,
            last: list.clone(),
        };
        (pairs, words.iter().map(listed).collect())
    }

    /// Leaves the pairs known now; seldom enough to take a small share of the time.
    pub(super) fn leave(&mut self, flows: &FlowView) {
        let begun = Instant::now();
        if begun >= self.due {
            self.leave_at(begun, flows.flows());
            self.due = begun + begun.elapsed() * SHARE;
        }
    }

    /// Leaves the pairs of these flows, as known at a time.
    pub fn leave_at(&mut self, now: Instant, flows: impl Iterator<Item = FlowSnapshot>) {
        if now >= self.until {
            self.carried.clear();
        }
        // What others reported is theirs to report again: a suggestion would count for more.
        let known = flows.filter(|flow| flow.evidence > Evidence::Foreign);
        let mut all: Vec<Words> = Vec::new();
        for flow in known.take(MOST) {
            let key = &flow.flow.key;
            let ends = ends(key.src(), key.dst());
            let receiver = key.dest_qp().get();
            if let Some(queue_pairs) = self.carried.get_mut(&ends) {
                queue_pairs.remove(&receiver);
            }
            all.push(words(ends, receiver, flow.sender_qpn.get()));
        }
        for (ends, queue_pairs) in &self.carried {
            let more = queue_pairs
                .iter()
                .map(|(receiver, sender)| words(*ends, *receiver, *sender));
            all.extend(more.take(MOST.saturating_sub(all.len())));
        }
        // A flow in two queues is one pair.
        all.sort_unstable();
        all.dedup();
        let list = all.into_flattened();
        if list != self.last {
            self.ring.push(list.iter().copied());
            self.last = list;
        }
    }
}

/// Encodes both addresses as words.
fn ends(src: IpAddr, dst: IpAddr) -> [u64; WORDS - 1] {
    let [a, b] = halves(src);
    let [c, d] = halves(dst);
    [a, b, c, d]
}

fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .to_bits();
    [low(bits >> 64), low(bits)]
}

/// Returns the low half.
const fn low(bits: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    {
        bits as u64
    }
}

fn words([a, b, c, d]: [u64; WORDS - 1], receiver: u32, sender: u32) -> Words {
    [a, b, c, d, u64::from(receiver) << 32 | u64::from(sender)]
}

/// Splits a word into the receiver's and the sender's queue pair.
fn parted(qps: u64) -> (u32, u32) {
    let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default();
    (half(qps >> 32), half(qps))
}

fn listed([a, b, c, d, qps]: &Words) -> ListedPair {
    let address = |high: u64, low: u64| {
        let bits = u128::from(high) << 64 | u128::from(low);
        IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical()
    };
    let (dest_qp, sender_qp) = parted(*qps);
    ListedPair {
        src: address(*a, *b),
        dst: address(*c, *d),
        dest_qp,
        sender_qp,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use npcc_cnp::response::Response;
    use npcc_heap::records::{HEAD, Place};
    use npcc_pipeline::units::{Nanos, PortId, Priority};
    use npcc_roce::key::{FlowKey, Qpn, QueueFlow};

    use super::*;

    const SRC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 3));
    const DST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 2, 2));

    /// A flow to this queue pair, sent by that one.
    fn flow(receiver: u32, sender: u32, evidence: Evidence) -> FlowSnapshot {
        FlowSnapshot {
            flow: QueueFlow {
                key: FlowKey::new(SRC, DST, Qpn::new(receiver)),
                egress: PortId(1),
                priority: Priority::new(3),
            },
            sender_qpn: Qpn::new(sender),
            evidence,
            response: Response::default(),
            ingress: PortId(0),
            bytes: 0,
            cnps: 0,
            would_send: 0,
            cold: false,
            refused: None,
            last_cnp: Nanos::ZERO,
            first_seen: Nanos::ZERO,
            last_seen: Nanos::ZERO,
            near: Nanos::ZERO,
            far: None,
            gated: false,
        }
    }

    /// Pairs carried from a process that knew queue pair 0x11's sender as 17.
    fn carried() -> (Pairs, Instant) {
        let ring = Ring::on_heap(2, 8 * WORDS);
        ring.push(words(ends(SRC, DST), 0x11, 17));
        let now = Instant::now();
        (Pairs::of(ring, now).0, now)
    }

    /// Receiver's and sender's queue pair of each pair that is left now.
    fn left(pairs: &Pairs) -> Vec<(u32, u32)> {
        let (all, _) = pairs.last.as_chunks::<WORDS>();
        all.iter().map(|pair| parted(pair[WORDS - 1])).collect()
    }

    /// Law: a pair that packets show takes the place of the one carried, whose sender it may contradict.
    #[test]
    fn a_pair_that_packets_show_takes_the_place_of_the_one_carried() {
        let (mut pairs, now) = carried();
        pairs.leave_at(now, [flow(0x12, 18, Evidence::Psn)].into_iter());
        assert_eq!(left(&pairs), [(0x11, 17), (0x12, 18)]);
        pairs.leave_at(now, [flow(0x11, 19, Evidence::Psn)].into_iter());
        assert_eq!(left(&pairs), [(0x11, 19)]);
    }

    /// Law: ends that other switches reported are not left: their reports show them again, and a suggestion would count for more.
    #[test]
    fn a_pair_that_another_switch_reported_is_not_left() {
        let (mut pairs, now) = carried();
        for evidence in Evidence::ALL {
            pairs.leave_at(now, [flow(0x12, 18, evidence)].into_iter());
            let own = !matches!(evidence, Evidence::None | Evidence::Foreign);
            assert_eq!(left(&pairs).contains(&(0x12, 18)), own, "{evidence:?}");
        }
    }

    /// Law: a list that did not change is written once, so that its slot is not written over while the next process reads it.
    #[test]
    fn a_list_that_did_not_change_is_not_written_again() {
        let (mut pairs, now) = carried();
        let before = pairs.ring.written();
        for (sender, written) in [(18, 1), (18, 1), (19, 2)] {
            pairs.leave_at(now, [flow(0x12, sender, Evidence::Psn)].into_iter());
            assert_eq!(pairs.ring.written() - before, written);
        }
    }

    /// Law: a pair without a packet is left for ten minutes after each start, and not longer.
    #[test]
    fn a_pair_that_no_packet_confirms_outlives_restarts_until_ten_minutes_after_one() {
        let place = Place {
            first: 0,
            slots: 2,
            width: HEAD + 8 * WORDS,
        };
        let words_of_it = (0..place.words()).map(|_| AtomicU64::new(0));
        let memory = Arc::new(words_of_it.collect::<Vec<_>>());
        let ring = || Ring::new(memory.clone(), place);
        ring().push(words(ends(SRC, DST), 0x11, 17));
        let mut start = Instant::now();
        let lives = |start: Instant, seconds: u64| {
            let (mut pairs, suggested) = Pairs::of(ring(), start);
            let end = start + Duration::from_secs(seconds);
            pairs.leave_at(start, std::iter::empty());
            pairs.leave_at(end, std::iter::empty());
            (suggested.len(), end)
        };
        for _ in 0..3 {
            let (suggested, end) = lives(start, 599);
            assert_eq!(suggested, 1);
            start = end;
        }
        let (suggested, end) = lives(start, 601);
        assert_eq!(suggested, 1);
        assert_eq!(lives(end, 1).0, 0, "ten minutes without a packet");
    }

    #[test]
    fn a_pair_of_either_family_comes_back_from_words() {
        for (src, dst) in [("10.0.1.3", "10.0.2.2"), ("2001:db8::1", "fe80::7")] {
            let (src, dst): (IpAddr, IpAddr) = (src.parse().unwrap(), dst.parse().unwrap());
            let pair = ListedPair {
                src,
                dst,
                dest_qp: 0x00ff_ffff,
                sender_qp: 17,
            };
            assert_eq!(listed(&words(ends(src, dst), 0x00ff_ffff, 17)), pair);
        }
    }
}
