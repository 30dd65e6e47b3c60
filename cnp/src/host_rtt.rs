//! Round-trip time to a host: from a request that leaves toward it to the reply that comes back.
//!
//! ```text
//!   what is to be known:   switch --- CNP ---------------> host --- slower data -----------> switch
//!   what can be seen:      switch --- READ REQUEST ------> host --- first READ RESPONSE ---> switch
//!                          switch --- SEND, WRITE ------> host --- its ACK --------------> switch     (of the far side)
//! ```
//! Both run over the same cables and the same network card, so a reply takes as long as a CNP's effect, plus any wait
//! for memory, for other replies of the card or to be acknowledged together with more. That only lengthens it: of a
//! few delays the shorter ones are nearer to that time. The other round trips in sight do not contain the host that is to be signalled: data of the near
//! side and the far side's ACK measure the far side, and are kept as a measurement of *that* host.
//!
//! Laws: a reply counts only for the request with exactly its sequence number, of the connection it is paired with, when it
//! comes in by the port the request left by and leaves by the port the request came in by; a sequence number requested twice says nothing
//! (Karn). Of a host's last eight delays the second shortest counts: once there are three, one forged or mistaken reply cannot take it beyond the
//! true ones.
//! No delay is shorter than 2 us or longer than 5 ms; a flow's use of it is bounded once more ([`crate::dcqcn`]).

use npcc_pipeline::units::{Nanos, PortId};

use npcc_roce::fixed_map::FixedMap;
use npcc_roce::key::{Bits, FlowKey, KeyHasher, low32};
use npcc_roce::sample::PacketSample;

/// Maximum number of requests whose replies are awaited at a time.
const PROBES: usize = 4_096;
/// Capacity of the table of hosts; the one longest without a reply is replaced.
const HOSTS: usize = 4_096;
/// Number of latest delays of a host that count.
const RECENT: usize = 8;
/// Shortest and longest delay, in ns: less than a network card takes; more than 300 km and a busy card take.
const BOUNDS: (u64, u64) = (2_000, 5_000_000);

/// Passage of a packet: time, ingress port, egress port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    at: Nanos,
    ingress: PortId,
    egress: PortId,
}

impl Pass {
    fn of(record: &PacketSample) -> Pass {
        Pass {
            at: record.time,
            ingress: record.ingress,
            egress: record.egress,
        }
    }

    /// Time from a request to its reply; `None` if they cannot belong together.
    fn to(self, reply: Pass) -> Option<u64> {
        let same_way = (self.ingress, self.egress) == (reply.egress, reply.ingress);
        let time = reply.at.since(self.at).0;
        (same_way && reply.at > self.at && time <= BOUNDS.1).then_some(time.max(BOUNDS.0))
    }
}

/// State of one sequence number of one connection.
#[derive(Debug, Clone, Copy)]
enum State {
    /// The request passed.
    Requested(Pass),
    /// The reply passed, and the request may still be shown by another worker.
    Answered(Pass),
    /// The request was answered, or sent twice: what passes now says nothing.
    Void(Nanos),
}

impl State {
    fn at(self) -> Nanos {
        match self {
            State::Requested(pass) | State::Answered(pass) => pass.at,
            State::Void(at) => at,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    /// Key of packets to the host.
    key: FlowKey,
    psn: u32,
    state: State,
}

/// Last delays of one host, in ns; the first `seen` are set.
#[derive(Debug, Clone, Copy, Default)]
struct Delays {
    recent: [u32; RECENT],
    seen: usize,
    next: usize,
}

impl Delays {
    fn add(&mut self, delay: u64) {
        if let Some(place) = self.recent.get_mut(self.next) {
            *place = u32::try_from(delay).unwrap_or(u32::MAX);
        }
        self.next = (self.next + 1) % RECENT;
        self.seen = (self.seen + 1).min(RECENT);
    }

    /// Second shortest delay; the only one if there is no other.
    fn estimate(&self) -> Option<Nanos> {
        let known = self.recent.get(..self.seen)?;
        let (first, second) = known.iter().fold((None, None), |(first, second), delay| {
            let delay = Some(*delay);
            match (first, second) {
                (None, _) => (delay, None),
                _ if delay < first => (delay, first),
                (_, None) => (first, delay),
                _ => (first, second.min(delay)),
            }
        });
        second.or(first).map(|delay: u32| Nanos(u64::from(delay)))
    }
}

/// Estimator of round trips to hosts, on the near and the far side.
#[derive(Debug)]
pub(crate) struct HostRtt {
    probes: Box<[Option<Probe>]>,
    hosts: FixedMap<(Bits, bool), Delays>,
    hasher: KeyHasher,
}

impl HostRtt {
    /// Makes an estimator without measurements.
    pub(crate) fn new(seed: u64) -> HostRtt {
        HostRtt {
            probes: vec![None; PROBES].into_boxed_slice(),
            hosts: FixedMap::new(HOSTS, seed),
            hasher: KeyHasher::new(seed),
        }
    }

    /// Records the passage of a request that is to be answered.
    pub(crate) fn record_request(&mut self, record: &PacketSample) {
        let pass = Pass::of(record);
        let (state, delay) = match self.known(&record.key, record) {
            Some(State::Requested(_) | State::Void(_)) => (State::Void(pass.at), None),
            Some(State::Answered(reply)) if pass.to(reply).is_some() => {
                (State::Void(pass.at), pass.to(reply))
            }
            _ => (State::Requested(pass), None),
        };
        self.remember(&record.key, record, state);
        self.learn(&record.key, delay);
    }

    /// Records the passage of the reply to the request with key `key` and this record's sequence number.
    pub(crate) fn record_reply(&mut self, record: &PacketSample, key: &FlowKey) {
        let pass = Pass::of(record);
        match self.known(key, record) {
            Some(State::Requested(request)) => {
                if let Some(delay) = request.to(pass) {
                    self.remember(key, record, State::Void(pass.at));
                    self.learn(key, Some(delay));
                }
            }
            Some(State::Answered(_) | State::Void(_)) => {}
            None => self.remember(key, record, State::Answered(pass)),
        }
    }

    /// Time to the host that sends `flow` and back; `None` until it is known.
    pub(crate) fn delay(&self, flow: &FlowKey) -> Option<Nanos> {
        self.delay_of((flow.src, flow.is_ipv6()))
    }

    /// Time to the host that receives `flow` and back; `None` until it is known.
    pub(crate) fn far_delay(&self, flow: &FlowKey) -> Option<Nanos> {
        self.delay_of((flow.dst, flow.is_ipv6()))
    }

    fn delay_of(&self, host: (Bits, bool)) -> Option<Nanos> {
        self.hosts.get(self.hosts.find(&host)?)?.estimate()
    }

    fn place(&self, key: &FlowKey, psn: u32) -> usize {
        low32(self.hasher.hash(&(*key, psn))) as usize & (PROBES - 1)
    }

    /// State of this record's sequence number, of packets to `key`.
    fn known(&self, key: &FlowKey, record: &PacketSample) -> Option<State> {
        let probe = (*self.probes.get(self.place(key, record.psn))?)?;
        let same = (probe.key, probe.psn) == (*key, record.psn);
        (same && within(probe.state.at(), record.time)).then_some(probe.state)
    }

    fn remember(&mut self, key: &FlowKey, record: &PacketSample, state: State) {
        let place = self.place(key, record.psn);
        if let Some(place) = self.probes.get_mut(place) {
            *place = Some(Probe {
                key: *key,
                psn: record.psn,
                state,
            });
        }
    }

    fn learn(&mut self, request: &FlowKey, delay: Option<u64>) {
        let Some(delay) = delay else {
            return;
        };
        let host = (request.dst, request.is_ipv6());
        let index = match self.hosts.find(&host) {
            Some(index) => {
                self.hosts.touch(index);
                Some(index)
            }
            None => {
                if let Some(oldest) = self.hosts.oldest(0).filter(|_| self.hosts.is_full()) {
                    self.hosts.remove(oldest);
                }
                self.hosts.insert(host, Delays::default())
            }
        };
        if let Some(delays) = index.and_then(|index| self.hosts.get_mut(index)) {
            delays.add(delay);
        }
    }
}

/// Returns true if packets that passed at these times may belong together.
fn within(one: Nanos, other: Nanos) -> bool {
    one.since(other).max(other.since(one)).0 <= BOUNDS.1
}

#[cfg(test)]
#[path = "host_rtt_tests.rs"]
mod tests;
