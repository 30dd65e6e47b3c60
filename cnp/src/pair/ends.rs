//! The ends seen between all addresses, by key, by UDP source port, and by address pair.
//!
//! Fixed capacity. When full, the end longest unseen goes first, those not paired before those that are, and never one
//! seen within [`LIVE`]: packets made up by somebody cannot push out connections in use.

use npcc_pipeline::units::Nanos;

use super::datagram::Source;
use super::numbers::{NumberIndex, Sent};
use super::pair_state::{PairKey, PairState, Side, Verdict};
use super::psn::PsnState;
use crate::fixed_map::{FixedMap, NONE};
use crate::key::FlowKey;
use crate::sample::SlotRef;

/// An end seen this recently is in use.
pub(crate) const LIVE: Nanos = Nanos::from_millis(3_000);
/// An end that is not paired is forgotten after this time unseen.
pub(crate) const FORGET: Nanos = Nanos::from_millis(6_000);
/// An end that changed its port this often has none that says anything.
const MOST_PORT_CHANGES: u8 = 4;
/// List of ends that may go first.
const LOOSE: u8 = 0;
/// List of ends that are paired.
const PAIRED: u8 = 1;

/// A direction and a UDP source port; RC and UC apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PortKey {
    src: [u64; 2],
    dst: [u64; 2],
    port: u16,
    v6: bool,
    uc: bool,
}

impl PortKey {
    fn of(key: &FlowKey, port: u16, uc: bool) -> PortKey {
        PortKey {
            src: key.src,
            dst: key.dst,
            port,
            v6: key.is_ipv6(),
            uc,
        }
    }

    fn reversed(self) -> PortKey {
        PortKey {
            src: self.dst,
            dst: self.src,
            ..self
        }
    }
}

/// Ends of one direction with one UDP source port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) head: u32,
    pub(crate) len: u32,
    pub(crate) changed: Nanos,
}

/// One end: a queue pair as packets from one address to another name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) uc: bool,
    /// Who sends datagrams to it; `None` for a queue pair of a connection.
    pub(super) source: Option<Source>,
    pub(crate) verdict: Verdict,
    port: Option<u16>,
    port_changes: u8,
    /// Its address pair.
    pub(crate) pair: u32,
    /// Ends with the same port and direction.
    pub(crate) group: u32,
    previous: u32,
    next: u32,
    /// Ends of the same direction between these addresses.
    side_previous: u32,
    pub(super) side_next: u32,
    /// Sequence numbers of requests to it.
    pub(super) sent: Sent,
    /// Whose they fit.
    pub(super) psn: PsnState,
    /// The connection manager gave it a flow label: its port is no hash of queue pairs.
    pub(crate) labelled: bool,
    /// Whom it was last found to belong to.
    pub(super) partner: u32,
    pub(crate) last_seen: Nanos,
    pub(crate) packets: u64,
    pub(crate) packets_at_change: u64,
    /// Where its packets were last counted, and how many there.
    counted: Option<(usize, SlotRef, u32)>,
    /// The flow table's entry of this end, if its packets wait in a watched queue; a hint.
    pub(crate) flow: u32,
    /// When a CNP to this queue pair passed through.
    pub(crate) cnp_passed: Option<Nanos>,
    /// When we last told the *sender of this end's flow*.
    pub(crate) told: Option<Nanos>,
    /// When the queue pair this end names was last told among all of its host's.
    pub(crate) told_among: Option<Nanos>,
}

#[derive(Debug)]
pub(crate) struct Ends {
    ends: FixedMap<FlowKey, End>,
    groups: FixedMap<PortKey, Group>,
    pairs: FixedMap<PairKey, PairState>,
    pub(super) numbers: NumberIndex,
    pub(crate) refused: u64,
    pub(crate) displaced: u64,
    pub(crate) entered: u64,
}

impl Ends {
    pub(crate) fn new(capacity: usize, seed: u64) -> Ends {
        Ends {
            ends: FixedMap::new(capacity, seed),
            groups: FixedMap::new(capacity, seed),
            pairs: FixedMap::new(capacity, seed),
            numbers: NumberIndex::new(capacity, seed),
            refused: 0,
            displaced: 0,
            entered: 0,
        }
    }

    /// Brings what is known of these ends into the cache.
    pub(crate) fn warm(&self, keys: impl Iterator<Item = FlowKey>) {
        self.ends.warm(keys, End::look);
    }

    /// The same of ends known by their index.
    pub(crate) fn warm_found(&self, ends: &[u32]) {
        self.ends.warm_found(ends, End::look);
    }

    /// Touches all memory there will ever be.
    pub(crate) fn touch_memory(&mut self, any: FlowKey) {
        self.ends.touch_memory(any);
        self.groups.touch_memory(PortKey::of(&any, 0, false));
        self.pairs.touch_memory(PairKey::of(&any).0);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.ends.find(key)
    }

    pub(crate) fn end(&self, end: u32) -> Option<&End> {
        self.ends.get(end)
    }

    pub(crate) fn end_mut(&mut self, end: u32) -> Option<&mut End> {
        self.ends.get_mut(end)
    }

    pub(crate) fn key(&self, end: u32) -> Option<FlowKey> {
        self.ends.key(end)
    }

    pub(crate) fn pair(&self, pair: u32) -> Option<&PairState> {
        self.pairs.get(pair)
    }

    pub(super) fn pair_mut(&mut self, pair: u32) -> Option<&mut PairState> {
        self.pairs.get_mut(pair)
    }

    pub(crate) fn group(&self, group: u32) -> Option<&Group> {
        self.groups.get(group)
    }

    /// The group with this end's port in the other direction.
    pub(crate) fn opposite(&self, end: u32) -> Option<&Group> {
        self.opposite_index(self.ends.get(end)?.group)
            .and_then(|group| self.groups.get(group))
    }

    pub(super) fn opposite_index(&self, group: u32) -> Option<u32> {
        self.groups.find(&self.groups.key(group)?.reversed())
    }

    /// Ends of a group.
    pub(super) fn members(&self, group: u32) -> impl Iterator<Item = (u32, FlowKey)> + '_ {
        let head = self.groups.get(group).map_or(NONE, |group| group.head);
        let mut at = head;
        std::iter::from_fn(move || {
            let index = at;
            at = self.ends.get(index)?.next;
            Some((index, self.ends.key(index)?))
        })
    }

    /// The end after this one in its group ([`NONE`] after the last); `None` when this is no end.
    pub(super) fn next_in_group(&self, end: u32) -> Option<u32> {
        self.ends.get(end).map(|state| state.next)
    }

    pub(super) fn port(&self, end: u32) -> Option<u16> {
        self.ends.get(end)?.port
    }

    /// The end of this key, made for it if need be. `true` when it is new.
    pub(crate) fn enter(&mut self, key: &FlowKey, uc: bool, now: Nanos) -> Option<(u32, bool)> {
        self.enter_as(key, uc, None, now)
    }

    /// The same for an end that datagrams of this source name.
    pub(super) fn enter_as(
        &mut self,
        key: &FlowKey,
        uc: bool,
        source: Option<Source>,
        now: Nanos,
    ) -> Option<(u32, bool)> {
        if let Some(end) = self.ends.find(key) {
            self.ends.touch(end);
            self.ends.get_mut(end)?.last_seen = now;
            return Some((end, false));
        }
        if self.ends.is_full() && !self.make_room(now) {
            self.refused += 1;
            return None;
        }
        let (mut pair_key, direction) = PairKey::of(key);
        if source.is_some() {
            pair_key = pair_key.of_datagrams();
        }
        let pair = match self.pairs.find(&pair_key) {
            Some(pair) => pair,
            None => self.pairs.insert(pair_key, PairState::default())?,
        };
        let end = self.ends.insert(*key, End::new(uc, source, pair, now))?;
        let common = self.ends.find(&key.reversed(key.dest_qp())).is_some();
        self.entered += 1;
        let state = self.pairs.get_mut(pair)?;
        let head = state.side(direction).head;
        state.joined(direction, end, now);
        state.common += u32::from(common);
        self.ends.get_mut(end)?.side_next = head;
        if let Some(next) = self.ends.get_mut(head) {
            next.side_previous = end;
        }
        Some((end, true))
    }

    /// Forgets an end. Its group's verdicts are the caller's to renew ([`Ends::set_port`] first).
    fn remove(&mut self, end: u32, now: Nanos) {
        self.set_port(end, None, now);
        self.forget_psn(end);
        let Some((key, state)) = self.ends.remove(end) else {
            return;
        };
        if let Some(before) = self.ends.get_mut(state.side_previous) {
            before.side_next = state.side_next;
        }
        if let Some(after) = self.ends.get_mut(state.side_next) {
            after.side_previous = state.side_previous;
        }
        let common = self.ends.find(&key.reversed(key.dest_qp())).is_some();
        let (_, direction) = PairKey::of(&key);
        if let Some(pair) = self.pairs.get_mut(state.pair) {
            pair.left(direction, end, now);
            let side = pair.side_mut(direction);
            if side.head == end {
                side.head = state.side_next;
            }
            pair.common = pair.common.saturating_sub(u32::from(common));
            if pair.is_empty() {
                self.pairs.remove(state.pair);
            }
        }
    }

    /// A connection begins anew on an end: what its packets said before is void.
    pub(super) fn renew(&mut self, end: u32, labelled: bool, now: Nanos) {
        self.set_port(end, None, now);
        self.forget_psn(end);
        if let Some(state) = self.ends.get_mut(end) {
            state.port_changes = 0;
            state.labelled = labelled;
        }
    }

    fn make_room(&mut self, now: Nanos) -> bool {
        let idle = |list: u8| {
            self.ends.oldest(list).filter(|end| {
                self.ends
                    .get(*end)
                    .is_some_and(|state| now.since(state.last_seen) >= LIVE)
            })
        };
        match idle(LOOSE).or_else(|| idle(PAIRED)) {
            Some(end) => {
                self.displaced += 1;
                self.remove(end, now);
                true
            }
            None => false,
        }
    }

    /// Forgets up to `budget` ends that are not paired and long unseen.
    pub(crate) fn forget(&mut self, now: Nanos, budget: usize) {
        for _ in 0..budget {
            let Some(end) = self.ends.oldest(LOOSE) else {
                return;
            };
            if self
                .ends
                .get(end)
                .is_some_and(|state| now.since(state.last_seen) < FORGET)
            {
                return;
            }
            self.remove(end, now);
        }
    }

    /// Notes whom an end belongs to, and that both are to be kept.
    pub(super) fn settle(&mut self, end: u32, partner: Option<u32>) {
        let Some(state) = self.ends.get_mut(end) else {
            return;
        };
        let before = std::mem::replace(&mut state.partner, partner.unwrap_or(NONE));
        if partner == Some(before) || (partner.is_none() && before == NONE) {
            return;
        }
        if self
            .ends
            .get(before)
            .is_some_and(|other| other.partner == end || other.partner == NONE)
        {
            self.ends.set_list(before, LOOSE);
        }
        self.ends
            .set_list(end, if partner.is_some() { PAIRED } else { LOOSE });
        if let Some(partner) = partner {
            self.ends.set_list(partner, PAIRED);
        }
    }

    /// Notes the UDP source port of an end's packets.
    pub(crate) fn see_port(&mut self, end: u32, port: u16, now: Nanos) {
        let Some(state) = self.ends.get_mut(end) else {
            return;
        };
        if state.port == Some(port) || state.port_changes >= MOST_PORT_CHANGES {
            return;
        }
        let fickle = state.port.is_some();
        if fickle {
            self.forget_psn(end);
        }
        let Some(state) = self.ends.get_mut(end) else {
            return;
        };
        state.port_changes += u8::from(fickle);
        let given_up = state.port_changes >= MOST_PORT_CHANGES;
        self.set_port(end, (!given_up).then_some(port), now);
    }

    fn set_port(&mut self, end: u32, port: Option<u16>, now: Nanos) {
        self.leave_group(end, now);
        let (Some(port), Some(key)) = (port, self.ends.key(end)) else {
            return;
        };
        let Some(uc) = self.ends.get(end).map(|state| state.uc) else {
            return;
        };
        let port_key = PortKey::of(&key, port, uc);
        let group = match self.groups.find(&port_key) {
            Some(group) => Some(group),
            None => self.groups.insert(
                port_key,
                Group {
                    head: NONE,
                    len: 0,
                    changed: now,
                },
            ),
        };
        let Some(group) = group else {
            return;
        };
        let Some(members) = self.groups.get_mut(group) else {
            return;
        };
        let head = std::mem::replace(&mut members.head, end);
        members.len += 1;
        members.changed = now;
        let first = members.len == 1;
        if let Some(next) = self.ends.get_mut(head) {
            next.previous = end;
        }
        if let Some(state) = self.ends.get_mut(end) {
            (state.port, state.group, state.previous, state.next) = (Some(port), group, NONE, head);
        }
        if first {
            self.count_port(end, port_key, 1);
        }
        self.judge_group(group);
    }

    fn leave_group(&mut self, end: u32, now: Nanos) {
        self.judge_as(end, Verdict::Silent);
        let Some(state) = self.ends.get_mut(end) else {
            return;
        };
        let group = std::mem::replace(&mut state.group, NONE);
        state.port = None;
        let (previous, next) = (state.previous, state.next);
        (state.previous, state.next) = (NONE, NONE);
        let Some(port_key) = self.groups.key(group) else {
            return;
        };
        if let Some(before) = self.ends.get_mut(previous) {
            before.next = next;
        }
        if let Some(after) = self.ends.get_mut(next) {
            after.previous = previous;
        }
        let Some(members) = self.groups.get_mut(group) else {
            return;
        };
        if members.head == end {
            members.head = next;
        }
        members.len -= 1;
        members.changed = now;
        if members.len == 0 {
            self.count_port(end, port_key, -1);
        }
        self.judge_group(group);
        if self
            .groups
            .get(group)
            .is_some_and(|members| members.len == 0)
        {
            self.groups.remove(group);
        }
    }

    /// The first end on a port of its direction came (1), or the last one left (-1).
    fn count_port(&mut self, end: u32, port_key: PortKey, step: i32) {
        if port_key.uc {
            return;
        }
        let answered = self.groups.find(&port_key.reversed()).is_some();
        let pair = self.ends.get(end).map_or(NONE, |state| state.pair);
        if let Some(pair) = self.pairs.get_mut(pair) {
            let lonely = if answered { -step } else { step };
            pair.lonely = pair.lonely.saturating_add_signed(lonely);
            pair.ports = pair
                .ports
                .saturating_add_signed(if answered { 0 } else { step });
        }
    }

    /// The ends of the other direction between the same addresses.
    pub(super) fn opposite_side(&self, end: u32) -> Option<&Side> {
        let pair = self.pairs.get(self.ends.get(end)?.pair)?;
        let (_, direction) = PairKey::of(&self.ends.key(end)?);
        Some(pair.side(direction.back()))
    }

    /// Packets of this end's direction that have no answer at all.
    pub(crate) fn is_cold(&self, end: u32) -> bool {
        let (Some(state), Some(key)) = (self.ends.get(end), self.ends.key(end)) else {
            return true;
        };
        let Some(pair) = self.pairs.get(state.pair) else {
            return true;
        };
        let (_, direction) = PairKey::of(&key);
        pair.side(direction.back()).ends == 0 || (pair.hash_holds() && self.opposite(end).is_none())
    }
}

impl End {
    /// Something of every line of it.
    fn look(&self) -> u64 {
        let far = self.packets ^ self.packets_at_change ^ self.last_seen.0;
        far ^ u64::from(self.partner ^ self.flow ^ self.group ^ self.side_next)
    }

    /// Takes in a worker's count of this end's packets in one queue.
    pub(crate) fn count(&mut self, reader: usize, slot: SlotRef, packets: u32) {
        let fresh = match self.counted {
            Some((before, known, counted)) if (before, known) == (reader, slot) => {
                packets.wrapping_sub(counted)
            }
            // Another queue, or a slot given anew: only this packet is sure to be uncounted.
            _ => 1,
        };
        self.packets += u64::from(fresh);
        self.counted = Some((reader, slot, packets));
    }

    fn new(uc: bool, source: Option<Source>, pair: u32, now: Nanos) -> End {
        End {
            uc,
            source,
            verdict: Verdict::Silent,
            port: None,
            port_changes: 0,
            pair,
            group: NONE,
            previous: NONE,
            next: NONE,
            side_previous: NONE,
            side_next: NONE,
            sent: Sent::new(),
            psn: PsnState::new(),
            labelled: false,
            partner: NONE,
            last_seen: now,
            packets: 0,
            packets_at_change: 0,
            counted: None,
            flow: NONE,
            cnp_passed: None,
            told: None,
            told_among: None,
        }
    }
}
