//! Filter language: the words of pcap-filter(7) where it has them, and further words for the rest.
//!
//! ```text
//! all    = both { "or" both } | both { "and" both }      mixed only with parentheses
//! both   = "not" both | "(" all ")" | test
//! test   = "roce" | "cnp" | "pfc" | "dropped" | "received" | "sent" | "ip" | "ip6" | "arp" | "udp" | "tcp" | "icmp" | "icmp6" | "becn"
//!        | "reason" REASON | ["src"|"dst"] ("host" ADDRESS | "net" PREFIX | "port" N | "mac" MAC)
//!        | ("udp"|"tcp") ["src"|"dst"] "port" N | "vlan" [N] | "dscp" N | "ecn" (N|"ce"|"ect0"|"ect1"|"not-ect") | "ttl" N
//!        | ("priority"|"queue") N | "opcode" N | "class" CLASS | "qpn" N | "dqpn" N | "psn" N | "greater" N | "less" N
//! ```

use std::net::IpAddr;

use super::fields::mapped;
use super::filter::{End, Filter, MOST_TESTS, Step, Test};
use super::words::{Word, shown, words};
use crate::route::prefix::Prefix;
use crate::units::Priority;
use crate::wire::{ethernet, udp};

/// Error in a filter, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct FilterError {
    /// Column of the wrong character, counted from 1; one past the last if something is missing.
    pub column: usize,
    /// Description of the error, and what could stand there.
    pub what: String,
}

/// Deepest nesting of parentheses and `not`.
const DEEPEST: usize = 32;
/// Longest text in bytes; a longer one is refused.
const LONGEST: usize = 4096;

impl Filter {
    /// Parses a filter; a blank text matches every frame.
    ///
    /// # Errors
    /// Returns the error, with the column where it is.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError {
                column: 1,
                what: format!("a filter has {LONGEST} characters at most"),
            });
        }
        let mut reader = Reader::of(text);
        if reader.words.is_empty() {
            return Ok(Filter::all());
        }
        reader.all(0)?;
        if let Some(word) = reader.peek() {
            let what = format!(
                "`{}` where `and`, `or` or the end is expected",
                shown(word.text)
            );
            return Err(reader.wrong(what));
        }
        Ok(Filter {
            steps: reader.steps.into(),
        })
    }
}

/// Words of a filter that are not yet read, and the steps of those that are.
pub(super) struct Reader<'a> {
    words: Vec<Word<'a>>,
    pub(super) next: usize,
    /// Column one past the last character.
    end: usize,
    steps: Vec<Step>,
    tests: usize,
}

impl<'a> Reader<'a> {
    fn of(text: &'a str) -> Reader<'a> {
        Reader {
            words: words(text),
            next: 0,
            end: text.trim_end().chars().count() + 1,
            steps: Vec::new(),
            tests: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    pub(super) fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Skips the next word if it is one of these; returns true if it did.
    fn skip(&mut self, any: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| any.contains(&word.text));
        self.next += usize::from(found);
        found
    }

    /// Returns an error at the next word.
    pub(super) fn wrong(&self, what: impl Into<String>) -> FilterError {
        FilterError {
            column: self.peek().map_or(self.end, |word| word.column),
            what: what.into(),
        }
    }

    /// Returns an error at the previous word.
    pub(super) fn wrong_before(&self, what: impl Into<String>) -> FilterError {
        let before = self.next.checked_sub(1);
        let word = before.and_then(|at| self.words.get(at));
        FilterError {
            column: word.map_or(self.end, |word| word.column),
            what: what.into(),
        }
    }

    fn all(&mut self, depth: usize) -> Result<(), FilterError> {
        self.both(depth)?;
        let mut chosen = None;
        while let Some(word) = self.peek() {
            let step = match word.text {
                "and" | "&&" => Step::And,
                "or" | "||" => Step::Or,
                _ => break,
            };
            if chosen.is_some_and(|chosen| chosen != step) {
                return Err(self.wrong(
                    "`and` and `or` beside each other: say with parentheses which comes first",
                ));
            }
            chosen = Some(step);
            self.next += 1;
            self.both(depth)?;
            self.steps.push(step);
        }
        Ok(())
    }

    fn both(&mut self, depth: usize) -> Result<(), FilterError> {
        if depth >= DEEPEST {
            return Err(self.wrong(format!(
                "more than {DEEPEST} parentheses and `not` inside each other"
            )));
        }
        if self.skip(&["not", "!"]) {
            self.both(depth + 1)?;
            self.steps.push(Step::Not);
            return Ok(());
        }
        if self.skip(&["("]) {
            self.all(depth + 1)?;
            if !self.skip(&[")"]) {
                return Err(self.wrong("`)` is missing"));
            }
            return Ok(());
        }
        self.test()
    }

    fn push(&mut self, test: Test) -> Result<(), FilterError> {
        self.tests += 1;
        if self.tests > MOST_TESTS {
            return Err(self.wrong_before(format!(
                "more than {MOST_TESTS} tests: a filter must stay cheap for the worker"
            )));
        }
        self.steps.push(Step::Test(test));
        Ok(())
    }

    fn test(&mut self) -> Result<(), FilterError> {
        let Some(word) = self.take() else {
            return Err(self.wrong("a test is missing, such as `roce` or `host 10.0.1.3`"));
        };
        let test = match word.text {
            "roce" => Test::Roce,
            "cnp" => Test::Cnp,
            "pfc" => Test::Pfc,
            "dropped" => Test::Dropped(None),
            "received" => Test::Received,
            "sent" => Test::Sent,
            "becn" => Test::Becn,
            "ip" => Test::Ip(4),
            "ip6" => Test::Ip(6),
            "arp" => Test::Ethertype(ethernet::ARP),
            "icmp" => Test::Protocol(1),
            "icmp6" => Test::Protocol(58),
            "udp" => return self.protocol(udp::PROTOCOL),
            "tcp" => return self.protocol(6),
            "src" => return self.end_of(End::Src),
            "dst" => return self.end_of(End::Dst),
            "host" | "net" | "port" | "mac" => {
                self.next -= 1;
                return self.end_of(End::Any);
            }
            "vlan" => Test::Vlan(self.vlan()?),
            "reason" => Test::Dropped(Some(self.reason()?)),
            "dscp" => Test::Dscp(self.byte("dscp", 63)?),
            "ecn" => Test::Ecn(self.ecn()?),
            "ttl" => Test::Ttl(self.byte("ttl", 255)?),
            "priority" | "queue" => Test::Priority(Priority::new(self.byte(word.text, 7)?)),
            "opcode" => Test::Opcode(self.byte("opcode", 255)?),
            "class" => Test::Class(self.class()?),
            "qpn" => Test::Qpn(self.number("qpn", 0xff_ffff)?),
            "dqpn" => Test::DestQpn(self.number("dqpn", 0xff_ffff)?),
            "psn" => Test::Psn(self.number("psn", 0xff_ffff)?),
            "greater" => Test::Greater(self.short("greater")?),
            "less" => Test::Less(self.short("less")?),
            other => return Err(self.wrong_before(unknown(other))),
        };
        self.push(test)
    }

    /// Parses the ports that may follow `udp` or `tcp`.
    fn protocol(&mut self, protocol: u8) -> Result<(), FilterError> {
        self.push(Test::Protocol(protocol))?;
        let follows = self.words.get(self.next..).unwrap_or_default();
        let mut follows = follows.iter().map(|word| word.text);
        let end = match (follows.next(), follows.next()) {
            (Some("port"), _) => End::Any,
            (Some("src"), Some("port")) => End::Src,
            (Some("dst"), Some("port")) => End::Dst,
            _ => return Ok(()),
        };
        self.next += usize::from(end != End::Any);
        self.end_of(end)?;
        self.steps.push(Step::And);
        Ok(())
    }

    fn end_of(&mut self, end: End) -> Result<(), FilterError> {
        let what = self.peek().map_or("", |word| word.text);
        self.next += usize::from(matches!(what, "host" | "net" | "port" | "mac"));
        let test = match what {
            "host" => {
                let host: IpAddr = self.value("host", "an address such as 10.0.1.3")?;
                net(end, Prefix::host(host))
            }
            "net" => {
                let prefix = self.prefix()?;
                net(end, prefix)
            }
            "port" => Test::Port(end, self.short("port")?),
            "mac" => Test::Mac(end, self.mac()?),
            _ => return Err(self.wrong("`host`, `net`, `port` or `mac` must follow")),
        };
        self.push(test)
    }
}

fn net(end: End, prefix: Prefix) -> Test {
    let (address, version, before) = match prefix.first() {
        IpAddr::V4(v4) => (mapped(v4.to_bits()), 4, 96),
        IpAddr::V6(v6) => (v6.to_bits(), 6, 0),
    };
    let len = u32::from(prefix.len()) + before;
    let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
    Test::Net(end, version, address & mask, mask)
}

fn unknown(word: &str) -> String {
    match word {
        "and" | "&&" | "or" | "||" | ")" => {
            format!("`{word}` where a test is expected, such as `roce` or `host 10.0.1.3`")
        }
        _ => format!(
            "`{}` is no test: roce, cnp, pfc, dropped, received, sent, host, net, port, mac, vlan, dscp, ecn, qpn, dqpn, opcode and others, see the manual",
            shown(word)
        ),
    }
}
