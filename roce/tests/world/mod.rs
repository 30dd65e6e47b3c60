//! A world of four hosts, their connections and a forger, shown to a connection table in random histories; and an oracle that knows who
//! sends.
//!
//! Possible events: connections by the connection manager and without, by the hash, with a port of their own, by ports of their own
//! queue pair's number, READ, UC and datagrams; numbers reused at once by another connection, with or without a teardown message; paths
//! by source, destination and port, so that only the data or only the answers of a connection pass; records and messages lost; silence;
//! restarts of the switch; and packets made up by an attacker who does not see the others' (he knows every number and port, but no
//! comm id).
//!
//! Law: every queue pair that is signalled did send. The oracle forgives what cannot be known: until a record of a queue pair's new use came, and for
//! [`REFRESH`] if its packets look like the old ones, or made-up ones were shown instead.

pub(crate) mod octets;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;
use npcc_roce::cm::message::{Message, Service};
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::connections::ConnectionTable;
use npcc_roce::pair::export::{EndReader, Row};
use npcc_roce::pair::foreign::{HOLDS, PeerId, ReportedEnd};
use npcc_roce::pair::port_hash::port_of;
use npcc_roce::pair::{Evidence, Pairing};
use npcc_roce::sample::{PacketSample, SampleFlags, SlotRef};

/// Time after which a flow's packet is shown at the latest, and a little more while it waits for a better one.
const REFRESH: Nanos = Nanos::from_millis(15);
/// Maximum time from a made-up packet to the first true one after it that is shown.
const HIDDEN: Nanos = Nanos::from_millis(100);
/// Time without a shown packet after which a flow is not signalled.
const LISTED: Nanos = Nanos::from_millis(3_000);
/// Number of queue pair numbers of a host: few, so that they are reused.
const NUMBERS: u32 = 24;
const WRITE: u8 = 0x0a;
const ACK: u8 = 0x11;
const READ_REQUEST: u8 = 0x0c;
const READ_RESPONSE: u8 = 0x10;
const UC_WRITE: u8 = 0x2a;
const DATAGRAM: u8 = 0x64;

/// Source of randomness.
pub(crate) trait Dice {
    /// The next number; `None` ends the history.
    fn word(&mut self) -> Option<u32>;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Set up by the connection manager; with a flow label (a port of its own) or without.
    Managed {
        label: u32,
        uc: bool,
    },
    /// No connection manager, port by the hash, sequence numbers from 0.
    Hash,
    /// READ with the port by the hash: the data are the answers.
    Read,
    /// Port chosen by the application, random sequence numbers.
    Fixed,
    /// Ports by the number of the own queue pair.
    Own,
    Uc,
    Datagrams,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    kind: Kind,
    /// Hosts of the sender and the receiver.
    hosts: (u32, u32),
    /// Queue pairs of the sender and the receiver.
    sender: u32,
    receiver: u32,
    ports: (u16, u16),
    number: u32,
    ids: Option<(u32, u32)>,
    began: Nanos,
    /// True if the previous use of its receiver's number had the same port.
    looks_old: bool,
    /// Time at which it last sent (`sent`), and since when it has sent without a pause (`run`).
    sent: Nanos,
    run: Nanos,
}

/// State of a flow at the worker.
#[derive(Clone, Copy, Debug)]
struct Seen {
    slot: u32,
    packets: u32,
    shown: Nanos,
    details: u32,
    port: u16,
    request: Option<u32>,
    forged: Nanos,
    delivered: Nanos,
    /// Time of the last packet shown that is not made up.
    real: Nanos,
    /// Time of the first packet shown since the table may have forgotten the flow.
    since: Nanos,
}

/// Box on the other path: it sees the packets that do not pass here, and reports their ends.
struct Peer {
    book: ConnectionTable,
    reader: EndReader,
}

impl Peer {
    fn new(seed: u32) -> Peer {
        let book = book(seed);
        let reader = book.feed().read();
        Peer { book, reader }
    }
}

pub(crate) struct World<D> {
    dice: D,
    book: ConnectionTable,
    peer: Peer,
    now: Nanos,
    salt: u32,
    asymmetric: bool,
    forger: bool,
    /// Percentage of records and messages lost.
    lost: u32,
    connections: Vec<Connection>,
    seen: HashMap<FlowKey, Seen>,
    requests: HashMap<u32, u32>,
    next_id: u32,
    last_port: HashMap<FlowKey, u16>,
    /// Made-up connections for numbers of datagrams: the sender they name, and the time.
    made_up: HashMap<FlowKey, (u32, Nanos)>,
    /// Number of decisions by evidence.
    pub(crate) signalled: [u64; Evidence::COUNT],
    /// Log of events, if wanted.
    pub(crate) log: Option<Vec<String>>,
}

fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | host))
}

fn key(from: u32, to: u32, qpn: u32) -> FlowKey {
    FlowKey::new(address(from), address(to), Qpn::new(qpn))
}

fn mix(word: u32) -> u32 {
    let mixed = word.wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
    mixed ^ mixed >> 13
}

fn book(seed: u32) -> ConnectionTable {
    ConnectionTable::new(256, u64::from(seed))
}

impl Connection {
    fn data(&self) -> FlowKey {
        key(self.hosts.0, self.hosts.1, self.receiver)
    }

    fn answers(&self) -> FlowKey {
        key(self.hosts.1, self.hosts.0, self.sender)
    }
}

impl<D: Dice> World<D> {
    pub(crate) fn new(mut dice: D) -> Option<World<D>> {
        let (salt, manner) = (dice.word()?, dice.word()?);
        Some(World {
            dice,
            book: book(salt),
            peer: Peer::new(salt),
            now: Nanos::from_millis(10),
            salt,
            asymmetric: manner & 1 != 0,
            forger: manner & 2 != 0,
            lost: if manner & 4 != 0 { 25 } else { 0 },
            connections: Vec::new(),
            seen: HashMap::new(),
            requests: HashMap::new(),
            next_id: 1,
            last_port: HashMap::new(),
            made_up: HashMap::new(),
            signalled: [0; Evidence::COUNT],
            log: None,
        })
    }

    /// Runs up to `events` events; returns the first error.
    pub(crate) fn run(&mut self, events: u32) -> Result<(), String> {
        for _ in 0..events {
            match self.event() {
                None => return Ok(()),
                Some(Err(wrong)) => return Err(wrong),
                Some(Ok(())) => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!("{:>12} us {}", now.0 / 1_000, what()));
        }
    }

    fn below(&mut self, n: u32) -> Option<u32> {
        Some(self.dice.word()? % n.max(1))
    }

    fn chance(&mut self, percent: u32) -> Option<bool> {
        Some(percent > 0 && self.below(100)? < percent)
    }

    fn one(&mut self) -> Option<Option<usize>> {
        let count = u32::try_from(self.connections.len()).ok()?;
        if count == 0 {
            return Some(None);
        }
        Some(Some(self.below(count)? as usize))
    }

    fn event(&mut self) -> Option<Result<(), String>> {
        let what = self.below(32)?;
        match what {
            0..=5 => self.open()?,
            6..=8 => self.close()?,
            9..=22 => return self.burst(),
            23..=25 => return self.lock_step(),
            26 => self.pause()?,
            27 => {
                for book in [&mut self.book, &mut self.peer.book] {
                    (0..64).for_each(|_| book.age(self.now));
                }
            }
            28 if self.chance(20)? => {
                self.note(|| "the switch begins anew".to_owned());
                self.book = book(self.salt);
                self.seen.clear();
            }
            29 => self.report()?,
            _ if self.forger => self.forge()?,
            _ => {}
        }
        Some(Ok(()))
    }

    /// Takes what the peer reports, as far as it comes through; now and then the peer reports all its ends.
    fn report(&mut self) -> Option<()> {
        if self.chance(20)? {
            let _ = self.peer.reader.walk();
        }
        self.peer.book.export(self.now);
        while let Some(row) = self.peer.reader.take() {
            if self.chance(self.lost)? {
                continue;
            }
            self.note(|| format!("the peer reports {row:?}"));
            match row {
                Row::End(end) => {
                    let end = ReportedEnd {
                        key: end.key,
                        udp_port: end.udp_port,
                        partner: None,
                        holds: HOLDS,
                    };
                    // Refused only where another peer reported it.
                    let _ = self.book.take_end(PeerId(0), &end, self.now);
                }
                Row::Gone(key, port) => self.book.forget_end(PeerId(0), (&key, port), self.now),
                Row::Cm(..) | Row::Walked(_) => {}
            }
        }
        Some(())
    }

    fn pause(&mut self) -> Option<()> {
        const PAUSES: [u64; 8] = [1, 5, 20, 60, 1_100, 3_200, 7_000, 100_000];
        let pause = PAUSES[self.below(8)? as usize];
        self.now += Nanos::from_millis(pause);
        self.note(|| format!("{pause} ms of silence"));
        Some(())
    }

    fn free(&mut self, host: u32) -> Option<Option<u32>> {
        let start = self.below(NUMBERS)?;
        let used = |qpn: u32| {
            let of = |one: &Connection| {
                (one.hosts.0, one.sender) == (host, qpn)
                    || (one.hosts.1, one.receiver) == (host, qpn)
            };
            self.connections.iter().any(of)
        };
        let numbers = (0..NUMBERS).map(|n| 2 + (start + n) % NUMBERS);
        Some(numbers.into_iter().find(|qpn| !used(*qpn)))
    }

    fn open(&mut self) -> Option<()> {
        if self.connections.len() >= 8 {
            return Some(());
        }
        let hosts = (0x101 + self.below(2)?, 0x201 + self.below(2)?);
        let (Some(a), Some(b)) = (self.free(hosts.0)?, self.free(hosts.1)?) else {
            return Some(());
        };
        let kind = match self.below(10)? {
            0 | 1 => Kind::Managed {
                label: 1 + self.below(1 << 19)?,
                uc: false,
            },
            2 => Kind::Managed {
                label: 0,
                uc: false,
            },
            3 => Kind::Managed { label: 7, uc: true },
            4 | 5 => Kind::Hash,
            6 => Kind::Read,
            7 => Kind::Fixed,
            8 => Kind::Own,
            _ if self.chance(50)? => Kind::Uc,
            _ => Kind::Datagrams,
        };
        let same = |port: u16| (port, port);
        let low = |word: u32| 0xc000 | u16::try_from(word & 0x3fff).unwrap_or(0);
        let ports = match kind {
            Kind::Managed { label, .. } if label != 0 => same(low(mix(label ^ a << 8 ^ b))),
            Kind::Fixed => same(0xd123),
            Kind::Own => (low(mix(a)), low(mix(b))),
            _ => same(port_of(Qpn::new(a), Qpn::new(b))),
        };
        let number = match kind {
            Kind::Hash | Kind::Read => 0,
            // From 0, the data of one and the answers of another cannot be told apart (docs/pairing.md).
            Kind::Own if !self.asymmetric => 0,
            _ => self.dice.word()? & 0xff_ffff,
        };
        let mut connection = Connection {
            kind,
            hosts,
            sender: a,
            receiver: b,
            ports,
            number,
            ids: None,
            began: self.now,
            looks_old: false,
            sent: self.now,
            run: self.now,
        };
        let old = self.last_port.insert(connection.data(), ports.0);
        connection.looks_old = old == Some(ports.0);
        self.note(|| format!("opens {connection:?}"));
        if let Kind::Managed { label, uc } = kind {
            connection.ids = Some((self.next_id, self.next_id + 1));
            self.next_id += 2;
            self.connect(
                connection.hosts,
                (a, b),
                (self.next_id - 2, self.next_id - 1),
                (label, uc),
            )?;
            if self.chance(20)? {
                self.connect(
                    connection.hosts,
                    (a, b),
                    (self.next_id - 2, self.next_id - 1),
                    (label, uc),
                )?;
            }
        }
        self.now += Nanos::from_micros(20);
        connection.began = self.now;
        self.connections.push(connection);
        Some(())
    }

    /// Passes a REQ and a REP.
    fn connect(
        &mut self,
        (from, to): (u32, u32),
        (a, b): (u32, u32),
        (local, remote): (u32, u32),
        (flow_label, uc): (u32, bool),
    ) -> Option<()> {
        let service = if uc { Service::Uc } else { Service::Rc };
        let req = Message::Req {
            local,
            qpn: Qpn::new(a),
            psn: 0,
            service,
            flow_label,
        };
        self.message(from, to, &req)?;
        self.now += Nanos::from_micros(20);
        let rep = Message::Rep {
            local: remote,
            remote: local,
            qpn: Qpn::new(b),
            psn: 0,
        };
        self.message(to, from, &rep)?;
        self.now += Nanos::from_micros(20);
        Some(())
    }

    fn message(&mut self, from: u32, to: u32, message: &Message) -> Option<()> {
        if self.passes(from, to, 0xc001) && !self.chance(self.lost)? {
            self.book
                .observe_message((&key(from, to, 1), PortId(0)), message, self.now);
        }
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let Some(at) = self.one()? else {
            return Some(());
        };
        let gone = self.connections.swap_remove(at);
        self.note(|| format!("closes {gone:?}"));
        // Only its teardown message shows that a connection ended that never sent.
        let shown = self.seen.get(&gone.data());
        let shown = shown.is_some_and(|seen| seen.delivered >= gone.began);
        let quiet = (self.lost, self.asymmetric);
        if !shown {
            (self.lost, self.asymmetric) = (0, false);
        }
        if let Some((local, remote)) = gone.ids
            && (!shown || self.chance(75)?)
        {
            let (near, far) = gone.hosts;
            let dreq = Message::Dreq {
                local,
                remote,
                remote_qpn: Qpn::new(gone.receiver),
            };
            self.message(near, far, &dreq)?;
            self.message(
                far,
                near,
                &Message::Drep {
                    local: remote,
                    remote: local,
                },
            )?;
        }
        (self.lost, self.asymmetric) = quiet;
        self.now += Nanos::from_millis(1);
        Some(())
    }

    /// Returns true if packets with these addresses and port pass this switch.
    fn passes(&self, from: u32, to: u32, port: u16) -> bool {
        !self.asymmetric || mix(from ^ to << 10 ^ u32::from(port) ^ self.salt) & 1 == 0
    }

    fn burst(&mut self) -> Option<Result<(), String>> {
        let Some(at) = self.one()? else {
            return Some(Ok(()));
        };
        let (count, gap) = match self.below(4)? {
            0 => (70 + self.below(30)?, 1_000_000),
            1 => (1 + self.below(8)?, 5_000_000),
            _ => (1 + self.below(30)?, 20_000),
        };
        for _ in 0..count {
            if let Err(wrong) = self.exchange(at)? {
                return Some(Err(wrong));
            }
            self.now += Nanos(gap);
        }
        Some(Ok(()))
    }

    /// Makes all connections by the hash send together.
    fn lock_step(&mut self) -> Option<Result<(), String>> {
        let rounds = 1 + self.below(20)?;
        for _ in 0..rounds {
            for at in 0..self.connections.len() {
                if matches!(self.connections[at].kind, Kind::Hash | Kind::Own)
                    && let Err(wrong) = self.exchange(at)?
                {
                    return Some(Err(wrong));
                }
            }
            self.now += Nanos::from_micros(100);
        }
        Some(Ok(()))
    }

    /// Passes a packet of data and its answer.
    fn exchange(&mut self, at: usize) -> Option<Result<(), String>> {
        let (now, here) = (self.now, &mut self.connections[at]);
        if now.since(here.sent) >= Nanos::from_millis(10) {
            here.run = now;
        }
        here.sent = now;
        let one = *here;
        let number = one.number;
        // A message of some packets.
        self.connections[at].number = (number + 1 + self.below(4)?) & 0xff_ffff;
        let (data, answers) = (one.data(), one.answers());
        let (forth, back) = one.ports;
        match one.kind {
            Kind::Read => {
                self.packet(&answers, READ_REQUEST, back, number, None, false)?;
                self.packet(&data, READ_RESPONSE, forth, number, None, false)?;
            }
            Kind::Uc | Kind::Managed { uc: true, .. } => {
                self.packet(&data, UC_WRITE, forth, number, None, false)?;
            }
            Kind::Datagrams => {
                self.packet(&data, DATAGRAM, forth, number, Some(one.sender), false)?;
                self.packet(&answers, DATAGRAM, back, number, Some(one.receiver), false)?;
            }
            _ => {
                self.packet(&data, WRITE, forth, number, None, false)?;
                self.now += Nanos::from_micros(3);
                self.packet(&answers, ACK, back, number, None, false)?;
            }
        }
        let seen = self.seen.get(&data).copied();
        Some(match seen {
            Some(seen) if self.passes(one.hosts.0, one.hosts.1, forth) => self.decide(&one, &seen),
            _ => Ok(()),
        })
    }

    /// Processes a packet as the worker does.
    fn packet(
        &mut self,
        key: &FlowKey,
        opcode: u8,
        port: u16,
        number: u32,
        source: Option<u32>,
        forged: bool,
    ) -> Option<()> {
        let hosts = (host(key.src()), host(key.dst()));
        if !forged && !self.passes(hosts.0, hosts.1, port) {
            if !self.chance(self.lost)? {
                let record = record(key, opcode, port, number, source, (0, 0, self.now));
                let _ = self.peer.book.observe(&record, 0);
            }
            return Some(());
        }
        let (now, slots) = (self.now, u32::try_from(self.seen.len()).unwrap_or(0));
        let seen = self.seen.entry(*key).or_insert(Seen {
            slot: slots,
            packets: 0,
            shown: Nanos::ZERO,
            details: 8,
            port,
            request: None,
            forged: Nanos::ZERO,
            delivered: Nanos::ZERO,
            real: Nanos::ZERO,
            since: now,
        });
        seen.packets += 1;
        if matches!(opcode, WRITE | READ_REQUEST) {
            seen.request = Some(number);
            self.requests.insert(seen.slot, number);
        }
        if forged {
            seen.forged = now;
        }
        let due = seen.details > 0
            || seen.port != port
            || now.since(seen.shown) >= Nanos::from_millis(10);
        let (slot, packets) = (seen.slot, seen.packets);
        if !due && !self.chance(25)? || self.chance(self.lost)? {
            return Some(());
        }
        if let Some(seen) = self.seen.get_mut(key) {
            (seen.shown, seen.port) = (now, port);
            seen.details = seen.details.saturating_sub(1);
            if seen.delivered == Nanos::ZERO || now.since(seen.delivered) >= LISTED {
                seen.since = now;
            }
            seen.delivered = now;
            if !forged {
                seen.real = now;
            }
        }
        let record = record(key, opcode, port, number, source, (slot, packets, now));
        let requests = &self.requests;
        let live = |_: usize, slot: SlotRef| requests.get(&slot.slot.0).copied();
        if let Some(end) = self.book.observe_with(&record, 0, live) {
            self.book.update_partner(end, now);
        }
        self.note(|| {
            format!(
                "{}{key:?} {opcode:#x} port {port:#x} number {number:#x} {source:?}",
                if forged { "FORGED " } else { "" }
            )
        });
        Some(())
    }

    /// Checks the queue pair that would be signalled for a flow that sends.
    fn decide(&mut self, one: &Connection, seen: &Seen) -> Result<(), String> {
        let Some(end) = self.book.find(&one.data()) else {
            return Ok(());
        };
        let pairing = self.book.pairing(end, self.now);
        self.book.update_partner(end, self.now);
        let Pairing::Paired(signalled, evidence) = pairing else {
            return Ok(());
        };
        if self.now.since(seen.delivered) >= LISTED || seen.delivered < one.began.max(one.run) {
            return Ok(());
        }
        self.signalled[evidence.index()] += 1;
        if signalled.get() == one.sender || evidence == Evidence::None {
            return Ok(());
        }
        let looks_old = one.looks_old && self.now.since(one.began.max(one.run)) < REFRESH;
        let hidden = seen.real < seen.forged && self.now.since(seen.forged) < HIDDEN;
        // No packet of a connection was seen to that number when its connection was made up.
        let before = self.made_up.get(&one.data());
        let named =
            before.is_some_and(|(sender, at)| signalled.get() == *sender && *at < one.began);
        let named = named && evidence == Evidence::Cm;
        if looks_old || hidden || named || self.now.since(seen.forged) < REFRESH {
            return Ok(());
        }
        Err(format!(
            "at {} us {signalled} is signalled by {evidence:?} for {one:?}",
            self.now.0 / 1_000
        ))
    }

    /// Passes made-up packets over a connection that is known.
    fn forge(&mut self) -> Option<()> {
        let Some(at) = self.one()? else {
            return Some(());
        };
        let one = self.connections[at];
        let bystander = if self.chance(50)? {
            2 + self.below(NUMBERS)?
        } else {
            0x1000 + self.below(4)?
        };
        // A packet made up before any was seen, or over a flow that never answers here, cannot be told from the truth.
        let shown = |key: &FlowKey| {
            let seen = self.seen.get(key).filter(|_| self.book.find(key).is_some());
            seen.is_some_and(|seen| {
                seen.since > one.began
                    && seen.real >= seen.since
                    && self.now.since(seen.delivered) < Nanos::from_millis(60_000)
                    && self.now.since(seen.since) > Nanos::from_micros(200)
            })
        };
        let (known, answered) = (shown(&one.data()), shown(&one.answers()));
        if !known || bystander == one.sender {
            return Some(());
        }
        let (lost, asymmetric) = (
            std::mem::take(&mut self.lost),
            std::mem::take(&mut self.asymmetric),
        );
        let ids = (0x10_0000 + self.below(4)?, 0x20_0000);
        let label = self.below(2)?;
        match self.below(5)? {
            0 => {
                self.note(|| format!("FORGED connection of {bystander:#x} over {one:?}"));
                if one.kind == Kind::Datagrams {
                    self.made_up.insert(one.data(), (bystander, self.now));
                }
                self.connect(one.hosts, (bystander, one.receiver), ids, (label, false))?;
            }
            1 => {
                self.note(|| format!("FORGED farewell {ids:?}"));
                let dreq = Message::Dreq {
                    local: ids.0,
                    remote: ids.1,
                    remote_qpn: Qpn::new(one.receiver),
                };
                self.message(one.hosts.0, one.hosts.1, &dreq)?;
            }
            2 if answered && one.kind != Kind::Read => {
                let to = key(one.hosts.1, one.hosts.0, bystander);
                self.packet(&to, ACK, one.ports.1, one.number, None, true)?;
            }
            3 => {
                let port = one.ports.0 ^ 1;
                let number = self.dice.word()? & 0xff_ffff;
                let (port, number) = if self.chance(50)? {
                    (port, one.number)
                } else {
                    (one.ports.0, number)
                };
                self.packet(&one.data(), WRITE, port, number, None, true)?;
            }
            _ => {
                self.packet(&one.data(), DATAGRAM, one.ports.0, 0, Some(bystander), true)?;
                self.packet(
                    &one.answers(),
                    DATAGRAM,
                    one.ports.1,
                    0,
                    Some(bystander),
                    true,
                )?;
            }
        }
        (self.lost, self.asymmetric) = (lost, asymmetric);
        Some(())
    }
}

fn record(
    key: &FlowKey,
    opcode: u8,
    port: u16,
    number: u32,
    source: Option<u32>,
    (slot, packets, time): (u32, u32, Nanos),
) -> PacketSample {
    PacketSample {
        key: *key,
        time,
        slot: SlotRef {
            slot: FlowSlot(slot),
            generation: 2,
        },
        packets,
        psn: number,
        source_qp: source.map(Qpn::new),
        udp_port: port,
        wire_len: 1_100,
        opcode,
        class: RoceClass::of(opcode, key.dest_qp().get()),
        flags: SampleFlags::default(),
        syndrome: (opcode == ACK).then_some(0x1f),
        ingress: PortId(0),
        egress: PortId(1),
        priority: Priority::new(3),
    }
}

fn host(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => u32::from(v4) & 0xff_ffff,
        IpAddr::V6(_) => 0,
    }
}
