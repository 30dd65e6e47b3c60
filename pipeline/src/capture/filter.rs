//! A filter in the form that a worker evaluates: tests and connectives in postfix order, over a stack of bits.
//!
//! Law: matching takes at most [`MOST_TESTS`] tests, allocates nothing and cannot fail.

use super::fields::Fields;
use crate::drop::DropReason;
use crate::units::Priority;
use crate::wire::bth::{self, RoceClass};

/// Most tests of a filter: each costs the worker a few nanoseconds a frame while the filter is active.
pub const MOST_TESTS: usize = 48;

/// Stage of a frame, as far as a filter tests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Frame was received.
    Received,
    /// Frame was handed to a device.
    Sent,
    /// Frame was dropped.
    Dropped(DropReason),
}

/// End of a packet that a test refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Either end.
    Any,
    /// Source.
    Src,
    /// Destination.
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

/// One test of a frame.
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
    /// Tests for a packet of this IP version with an address in this prefix, in the form [`Fields`] has addresses; the second
    /// number is the mask.
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
    /// Tests for a length of at least this many bytes.
    Greater(u16),
    /// Tests for a length of at most this many bytes.
    Less(u16),
}

impl Test {
    /// Returns the result if the stage alone decides it, without the frame.
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
            // Decided above.
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
            // A PFC frame has the priorities that it names.
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

/// One step of the stack machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Pushes the result of a test.
    Test(Test),
    /// Negates the last result.
    Not,
    /// Replaces the last two results by their conjunction.
    And,
    /// Replaces the last two results by their disjunction.
    Or,
}

/// A compiled filter, made from a text by [`Filter::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub(super) steps: Box<[Step]>,
}

/// Stages at which a filter may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sightings {
    /// True if it may match a received frame.
    pub received: bool,
    /// True if it may match a sent frame.
    pub sent: bool,
    /// True if it may match a dropped frame.
    pub dropped: bool,
}

/// Stack of results, the last in the lowest bit: each test pushes one, and there are fewer tests than bits.
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
    /// Returns a filter that matches every frame.
    #[must_use]
    pub fn all() -> Filter {
        Filter {
            steps: Box::default(),
        }
    }

    /// Returns true if the filter matches a frame with these fields, this stage, and this priority, if it has one.
    #[must_use]
    pub fn matches(&self, fields: &Fields, seen: Seen, priority: Option<Priority>) -> bool {
        self.answer(|test| test.holds(fields, seen, priority))
    }

    /// Returns the stages at which the filter may match; frames at other stages need not be examined.
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

    /// Returns true if the filter may match some frame at this stage.
    fn may_match(&self, seen: Seen) -> bool {
        // Each step may be false (`no`), may be true (`yes`), or both.
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
