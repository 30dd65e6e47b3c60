//! A filter in the form in which a worker asks it: tests and connectives in a row, over a stack of bits.
//!
//! Law: matching takes at most [`MOST_TESTS`] tests, allocates nothing and cannot fail.

use super::fields::Fields;
use crate::drop::DropReason;
use crate::units::Priority;
use crate::wire::bth::{self, RoceClass};

/// Most tests of a filter: each costs the worker a few nanoseconds a frame while it is on.
pub const MOST_TESTS: usize = 48;

/// What happened to a frame, as far as a filter asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It came in.
    Received,
    /// It was handed to a device.
    Sent,
    /// It was dropped.
    Dropped(DropReason),
}

/// Which end of a packet is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Either.
    Any,
    /// Its source.
    Src,
    /// Its destination.
    Dst,
}

impl End {
    fn holds<T>(self, (src, dst): (T, T), test: impl Fn(T) -> bool) -> bool {
        match self {
            End::Any => test(src) || test(dst),
            End::Src => test(src),
            End::Dst => test(dst),
        }
    }
}

/// One question about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Received,
    Sent,
    Dropped(Option<DropReason>),
    Roce,
    Cnp,
    Pfc,
    Ip(u8),
    Ethertype(u16),
    Protocol(u8),
    /// A packet of this IP version with an address of this prefix, as [`Fields`] has addresses; the mask has the prefix's bits.
    Net(End, u8, u128, u128),
    Mac(End, [u8; 6]),
    Port(End, u16),
    Vlan(Option<u16>),
    Dscp(u8),
    Ecn(u8),
    Ttl(u8),
    Priority(Priority),
    Opcode(u8),
    Class(RoceClass),
    Qpn(u32),
    DestQpn(u32),
    Psn(u32),
    Becn,
    /// At least so many bytes.
    Greater(u16),
    /// At most so many bytes.
    Less(u16),
}

impl Test {
    /// Whether it is answered without the frame, and how: by what happened to it.
    const fn of_seen(self, seen: Seen) -> Option<bool> {
        match (self, seen) {
            (Test::Received, _) => Some(matches!(seen, Seen::Received)),
            (Test::Sent, _) => Some(matches!(seen, Seen::Sent)),
            (Test::Dropped(None), _) => Some(matches!(seen, Seen::Dropped(_))),
            (Test::Dropped(Some(wanted)), Seen::Dropped(reason)) => {
                Some(wanted as u8 == reason as u8)
            }
            (Test::Dropped(Some(_)), _) => Some(false),
            _ => None,
        }
    }

    fn holds(self, fields: &Fields, seen: Seen, priority: Option<Priority>) -> bool {
        if let Some(answer) = self.of_seen(seen) {
            return answer;
        }
        let ip = fields.version != 0;
        let roce = |test: &dyn Fn(&super::fields::RoceFields) -> bool| {
            fields.roce.as_ref().is_some_and(test)
        };
        match self {
            // Answered above.
            Test::Received | Test::Sent | Test::Dropped(_) => false,
            Test::Roce => fields.roce.is_some(),
            Test::Cnp => roce(&|roce| roce.opcode == bth::CNP),
            Test::Pfc => fields.pfc.is_some(),
            Test::Ip(version) => fields.version == version,
            Test::Ethertype(wanted) => fields.ethertype == wanted,
            Test::Protocol(wanted) => ip && fields.protocol == wanted,
            Test::Net(end, version, prefix, mask) => {
                fields.version == version
                    && end.holds((fields.src, fields.dst), |address| address & mask == prefix)
            }
            Test::Mac(end, mac) => end.holds((fields.src_mac, fields.dst_mac), |one| one == mac),
            Test::Port(end, port) => fields
                .ports
                .is_some_and(|ports| end.holds(ports, |one| one == port)),
            Test::Vlan(None) => fields.tci.is_some(),
            Test::Vlan(wanted) => fields.vlan() == wanted,
            Test::Dscp(dscp) => ip && fields.tos >> 2 == dscp,
            Test::Ecn(ecn) => ip && fields.tos & 3 == ecn,
            Test::Ttl(ttl) => ip && fields.ttl == ttl,
            // A PFC frame is of the priorities that it names.
            Test::Priority(wanted) => match fields.pfc {
                Some(classes) => classes & wanted.bit() != 0,
                None => priority == Some(wanted),
            },
            Test::Opcode(opcode) => roce(&|roce| roce.opcode == opcode),
            Test::Class(class) => roce(&|roce| roce.class == class),
            Test::Qpn(qp) => roce(&|roce| roce.dest_qp == qp || roce.src_qp == Some(qp)),
            Test::DestQpn(qp) => roce(&|roce| roce.dest_qp == qp),
            Test::Psn(psn) => roce(&|roce| roce.psn == psn),
            Test::Becn => roce(&|roce| roce.becn),
            Test::Greater(len) => fields.len >= len,
            Test::Less(len) => fields.len <= len,
        }
    }
}

/// A step of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Pushes an answer.
    Test(Test),
    /// Replaces the last answer.
    Not,
    /// Replaces the last two answers.
    And,
    /// The same.
    Or,
}

/// Which frames are wanted. Made of a text: see [`Filter::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub(super) steps: Box<[Step]>,
}

/// What may happen to a frame that a filter wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sightings {
    /// It may have come in.
    pub received: bool,
    /// It may have been sent.
    pub sent: bool,
    /// It may have been dropped.
    pub dropped: bool,
}

/// Answers, the last in the lowest bit: each test pushes one, and there are not more tests than bits.
#[derive(Debug, Clone, Copy, Default)]
struct Answers(u64);

const _: () = assert!(MOST_TESTS < 64);

impl Answers {
    const fn push(&mut self, answer: bool) {
        self.0 = self.0 << 1 | answer as u64;
    }

    const fn pop(&mut self) -> bool {
        let last = self.0 & 1 == 1;
        self.0 >>= 1;
        last
    }
}

impl Filter {
    /// A filter that wants every frame.
    #[must_use]
    pub fn all() -> Filter {
        Filter {
            steps: Box::default(),
        }
    }

    /// Whether a frame is wanted: its fields, what happened to it, and its priority, where it has one.
    #[must_use]
    pub fn matches(&self, fields: &Fields, seen: Seen, priority: Option<Priority>) -> bool {
        self.answer(|test| test.holds(fields, seen, priority))
    }

    /// What can happen to a frame that it wants: nothing else need be looked at.
    #[must_use]
    pub fn sightings(&self) -> Sightings {
        let any_drop = || {
            let mut reasons = DropReason::ALL.into_iter();
            reasons.any(|reason| self.may_match(Seen::Dropped(reason)))
        };
        Sightings {
            received: self.may_match(Seen::Received),
            sent: self.may_match(Seen::Sent),
            dropped: any_drop(),
        }
    }

    /// Whether any frame to which this happened can be wanted.
    fn may_match(&self, seen: Seen) -> bool {
        // By the answers `maybe false` and `maybe true` of each step.
        let (mut no, mut yes) = (Answers::default(), Answers::default());
        for step in &self.steps {
            match step {
                Step::Test(test) => {
                    let known = test.of_seen(seen);
                    no.push(known != Some(true));
                    yes.push(known != Some(false));
                }
                Step::Not => {
                    let (n, y) = (no.pop(), yes.pop());
                    no.push(y);
                    yes.push(n);
                }
                Step::And | Step::Or => {
                    let ((n1, n2), (y1, y2)) = ((no.pop(), no.pop()), (yes.pop(), yes.pop()));
                    let and = *step == Step::And;
                    no.push(if and { n1 || n2 } else { n1 && n2 });
                    yes.push(if and { y1 && y2 } else { y1 || y2 });
                }
            }
        }
        self.steps.is_empty() || yes.pop()
    }

    fn answer(&self, holds: impl Fn(Test) -> bool) -> bool {
        let mut answers = Answers::default();
        for step in &self.steps {
            let answer = match step {
                Step::Test(test) => holds(*test),
                Step::Not => !answers.pop(),
                Step::And => answers.pop() & answers.pop(),
                Step::Or => answers.pop() | answers.pop(),
            };
            answers.push(answer);
        }
        self.steps.is_empty() || answers.pop()
    }
}
