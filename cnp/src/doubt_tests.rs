//! Forgeries against living flows: evidence that was contradicted is taken away, and comes back when the contradiction stops.
//!
//! A worker's cache and the table of connections, fed with frames; each flow sends a packet a millisecond and never pauses.

use std::net::IpAddr;

use npcc_pipeline::frame::{FrameBuf, HeapFrame, Meta};
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::Sighting;

use crate::flow_cache::{CacheReader, FlowCache, SlotControl};
use crate::safety_tests::message;
use crate::traffic_tests::rig::{DC, Packet, QUEUE, WAN};
use npcc_pipeline::units::Nanos;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::connections::ConnectionTable;
use npcc_roce::pair::port_hash::port_of;
use npcc_roce::pair::{Evidence, Pairing};

const HOST_A: [u8; 4] = [10, 0, 1, 3];
const HOST_B: [u8; 4] = [10, 0, 2, 2];
const SENDER: u32 = 0x18;
const RECEIVER: u32 = 0x11;
/// Queue pair of a bystander.
const BYSTANDER: u32 = 0x999;
/// Time in milliseconds without a forged packet after which evidence is back.
const BACK: u64 = 4_000;
/// Time in milliseconds after which a flow is known, and its numbers too.
const WARM: u64 = 500;

/// A living flow that is known by one kind of evidence.
struct Flow {
    kind: Evidence,
    cache: FlowCache,
    reader: CacheReader,
    book: ConnectionTable,
    psn: u32,
    now: u64,
    /// True if forged packets have a right ICRC.
    forged_right: bool,
}

impl Flow {
    fn new(kind: Evidence, forged_right: bool) -> Flow {
        let (cache, reader) = FlowCache::new(4_096, WAN.bit(), 4_096, 7);
        let mut flow = Flow {
            kind,
            cache,
            reader,
            book: ConnectionTable::new(4_096, 5),
            // Numbers that begin at 0 prove nothing.
            psn: if kind == Evidence::Psn { 0x80_0000 } else { 0 },
            now: 1,
            forged_right,
        };
        if kind == Evidence::Cm {
            let req = [(0, 7), (32, SENDER << 8), (88, 0x1234_5000)];
            let rep = [(0, 9), (4, 7), (12, RECEIVER << 8)];
            flow.pass(&message(HOST_A, HOST_B, 0x10, &req, true), true);
            flow.pass(&message(HOST_B, HOST_A, 0x13, &rep, true), false);
        }
        (0..WARM).for_each(|_| flow.lives());
        assert_eq!(flow.evidence(), kind, "before");
        flow
    }

    fn port(&self) -> u16 {
        let hash = port_of(Qpn::new(SENDER), Qpn::new(RECEIVER));
        if self.kind == Evidence::PortHash {
            hash
        } else {
            hash ^ 1
        }
    }

    /// Data of the flow, as the near side sends them.
    fn data(&self) -> Packet {
        Packet {
            src: HOST_A,
            dst: HOST_B,
            port: self.port(),
            opcode: 0x0a,
            qpn: RECEIVER,
            psn: self.psn,
            payload: 256,
        }
    }

    /// Acknowledgement of the data.
    fn ack(&self) -> Packet {
        Packet {
            src: HOST_B,
            dst: HOST_A,
            opcode: 0x11,
            qpn: SENDER,
            payload: 0,
            ..self.data()
        }
    }

    fn pass(&mut self, frame: &HeapFrame, out: bool) {
        let parsed = parse(frame.data()).unwrap();
        let (ingress, egress) = if out { (DC, WAN) } else { (WAN, DC) };
        self.cache.see(&Sighting {
            data: frame.data(),
            addresses: parsed.addresses_v4,
            parsed: &parsed,
            roce: parsed.roce.unwrap(),
            meta: &Meta::of(frame.data().len(), ingress, egress, QUEUE),
            now: Nanos::from_millis(self.now),
        });
        for copy in self.reader.pop_messages::<1>() {
            let message = copy.message().unwrap();
            self.book
                .observe_message((&copy.key, copy.ingress), &message, copy.time);
        }
        while let Some(record) = self.reader.pop() {
            let reader = &self.reader;
            let read_psn = |_, slot| reader.read(slot)?.request;
            let endpoint = self.book.observe_with(&record, 0, read_psn).unwrap();
            self.book.update_partner(endpoint, record.time);
            let paired = self.book.pairing(endpoint, record.time).evidence() != Evidence::None;
            let control = SlotControl {
                paired,
                ..SlotControl::default()
            };
            self.reader.set_control(record.slot, control);
        }
    }

    /// Passes a packet that an attacker made up.
    fn forge(&mut self, packet: &Packet, change: impl FnOnce(&mut [u8])) {
        let mut frame = packet.changed(change);
        *frame.data_mut().last_mut().unwrap() ^= u8::from(!self.forged_right);
        self.pass(&frame, packet.src == HOST_A);
    }

    /// Passes a packet of data and its answer, and a millisecond of time.
    fn lives(&mut self) {
        self.pass(&self.data().frame(), true);
        self.pass(&self.ack().frame(), false);
        self.psn = (self.psn + 1) & 0xff_ffff;
        self.now += 1;
        self.book.age(Nanos::from_millis(self.now));
    }

    /// Evidence for the flow's sender; asserts that no other is ever named.
    fn evidence(&self) -> Evidence {
        let (a, b) = (IpAddr::from(HOST_A), IpAddr::from(HOST_B));
        let endpoint = self.book.find(&FlowKey::new(a, b, Qpn::new(RECEIVER)));
        let pairing = endpoint.map_or(Pairing::Cold, |endpoint| {
            self.book.pairing(endpoint, Nanos::from_millis(self.now))
        });
        if let Pairing::Paired(sender, _) = pairing {
            assert_eq!(sender, Qpn::new(SENDER), "{} ms", self.now);
        }
        pairing.evidence()
    }

    /// Number of milliseconds, of this many, until the evidence was there for good.
    fn lost_for(&mut self, millis: u64) -> u64 {
        let begin = self.now;
        let mut lost = 0;
        for _ in 0..millis {
            if self.evidence() < self.kind {
                lost = self.now - begin + 1;
            }
            self.lives();
        }
        lost
    }
}

/// Forgeries that the review found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgery {
    /// Data of other UDP ports.
    Ports,
    /// ACKs of other UDP ports.
    AckPorts,
    /// An ACK to another queue pair on its port, with a number that fits, or another.
    AckFits,
    AckOther,
    /// A datagram to the sender's queue pair, or to the receiver's.
    AckDatagram,
    Datagram,
    /// ACKs with wrong sequence numbers.
    AckNumbers,
    /// ACKs to many queue pairs on its port.
    AckDisagree,
    /// Data to another queue pair on its port.
    OtherPair,
    /// Data with wrong sequence numbers.
    Numbers,
    /// A packet of UC.
    Unreliable,
}

const ALL: [Forgery; 11] = [
    Forgery::Ports,
    Forgery::AckPorts,
    Forgery::AckFits,
    Forgery::AckOther,
    Forgery::AckDatagram,
    Forgery::AckNumbers,
    Forgery::AckDisagree,
    Forgery::OtherPair,
    Forgery::Datagram,
    Forgery::Numbers,
    Forgery::Unreliable,
];
const KINDS: [Evidence; 4] = [
    Evidence::PortHash,
    Evidence::Psn,
    Evidence::Port,
    Evidence::Cm,
];

impl Forgery {
    fn against(self, flow: &mut Flow) {
        let (data, ack) = (flow.data(), flow.ack());
        let odd = |n: u32| ((n + 1) * 0x12_3457) & 0xff_ffff;
        let datagram = |packet: &Packet| Packet {
            opcode: 0x64,
            port: 0xd000,
            ..*packet
        };
        // The source queue pair, in the low octets of what follows the BTH.
        let from = |frame: &mut [u8]| frame[60..62].copy_from_slice(&[0x09, 0x99]);
        let mut forge = |packet: Packet| flow.forge(&packet, |_| {});
        match self {
            Forgery::Ports => (1..5).for_each(|n| {
                forge(Packet {
                    port: data.port + n,
                    ..data
                })
            }),
            Forgery::AckPorts => (1..5).for_each(|n| {
                forge(Packet {
                    port: data.port + n,
                    ..ack
                })
            }),
            Forgery::AckFits => forge(Packet {
                qpn: BYSTANDER,
                psn: ack.psn.wrapping_sub(1) & 0xff_ffff,
                ..ack
            }),
            Forgery::AckOther => forge(Packet {
                qpn: BYSTANDER,
                psn: odd(3),
                ..ack
            }),
            Forgery::AckNumbers => (0..8).for_each(|n| forge(Packet { psn: odd(n), ..ack })),
            Forgery::AckDisagree => (0..64).for_each(|n| {
                forge(Packet {
                    qpn: 0x1000 + n,
                    psn: odd(n),
                    ..ack
                })
            }),
            Forgery::OtherPair => forge(Packet {
                qpn: BYSTANDER,
                psn: odd(5),
                ..data
            }),
            Forgery::Numbers => (0..4).for_each(|n| {
                forge(Packet {
                    psn: odd(n),
                    ..data
                })
            }),
            Forgery::Unreliable => forge(Packet {
                opcode: 0x2a,
                ..data
            }),
            Forgery::AckDatagram => flow.forge(&datagram(&ack), from),
            Forgery::Datagram => flow.forge(&datagram(&data), from),
        }
    }
}

/// Milliseconds for which each forgery, made in each of `turns` milliseconds, takes each kind of evidence away, counted from the last.
fn table(turns: u32, right: bool) -> Vec<(Forgery, Evidence, u64)> {
    let cells = ALL
        .iter()
        .flat_map(|forgery| KINDS.map(|kind| (*forgery, kind)));
    let lost = cells.map(|(forgery, kind)| {
        let mut flow = Flow::new(kind, right);
        for turn in 0..turns {
            if turn > 0 {
                flow.lives();
            }
            forgery.against(&mut flow);
        }
        (forgery, kind, flow.lost_for(BACK + 500))
    });
    lost.collect()
}

/// Regression: four datagrams silenced a flow for as long as it did not pause.
#[test]
fn doubt_ends_when_its_cause_stops() {
    for turns in [1, 100] {
        let all = table(turns, true);
        let late: Vec<_> = all.iter().filter(|(.., lost)| *lost > BACK).collect();
        assert!(late.is_empty(), "{turns}: {late:?}");
        // Ports that change, ends that appear, transports that change: all of it is doubted at once.
        let doubted = all.iter().filter(|(.., lost)| *lost > 0).count();
        assert!(doubted >= 20, "{turns}: {doubted} of {}", all.len());
    }
}

#[test]
fn packets_that_a_nic_drops_take_no_evidence_away() {
    for turns in [1, 100] {
        for (forgery, kind, lost) in table(turns, false) {
            assert_eq!(lost, 0, "{forgery:?} {kind:?} {turns}");
        }
    }
}

/// The limit of doubt in docs/pairing.md: a packet a second exempts a sender, and its effect outlasts the packets by no more.
#[test]
fn a_forged_packet_a_second_keeps_a_flow_in_doubt_and_no_longer() {
    for kind in [Evidence::PortHash, Evidence::Psn, Evidence::Port] {
        let mut flow = Flow::new(kind, true);
        for second in 0..10 {
            let forged = Packet {
                port: flow.port() + 1,
                ..flow.data()
            };
            flow.forge(&forged, |_| {});
            let lost = flow.lost_for(1_000);
            // Twice there and back are four changes.
            assert!(second < 2 || lost == 1_000, "{kind:?} {second}: {lost}");
        }
        assert!(flow.lost_for(BACK) < BACK, "{kind:?}");
        assert_eq!(flow.evidence(), kind);
    }
}
