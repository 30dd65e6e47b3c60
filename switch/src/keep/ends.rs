//! Ends that are learned and not paired yet, for the next process: with the first packet of the other direction their connections are
//! paired, where they would have to be learned anew.
//!
//! Law: an end is left as long as the control core would know it ([`LooseEnd::is_known`]); what is left of it says only what was seen.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use npcc_cnp::key::{FlowKey, Qpn};
use npcc_cnp::pair::loose_end::LooseEnd;
use npcc_pipeline::units::Nanos;

use super::copies::Copies;
use super::store::Store;
use super::words::{Addresses, addresses, words};

/// Ends that are left at most: 5 MB of memory.
const MOST: usize = 1 << 16;
/// Ends there is room for at first.
const FIRST: usize = 1 << 10;
/// The least time between two lists, as those that are gone go on being left meanwhile.
const EVERY: Duration = Duration::from_millis(250);
/// A list is left so many times as seldom as it takes to make.
const SHARE: u32 = 20;

/// Words of an end.
const WORDS: usize = 5;
const WHAT: (&str, &str) = (
    "ends",
    "5 words an end: source and destination as IPv6, queue pair << 32 | UDP port << 16 | 1 for UC",
);

type Words = [u64; WORDS];

/// See the module's text.
#[derive(Debug)]
pub(super) struct Ends {
    copies: Copies,
    known: HashMap<Words, Nanos>,
    due: Instant,
    last: Vec<u64>,
}

impl Ends {
    /// What the process before left, to be recalled.
    ///
    /// # Errors
    /// Nothing can be left.
    pub(super) fn open(
        store: &Store,
        note: &mut dyn FnMut(String),
    ) -> io::Result<(Ends, Vec<LooseEnd>)> {
        let (copies, list) = Copies::open(store, WHAT, FIRST * WORDS, note)?;
        let list = list.unwrap_or_default();
        let (all, _) = list.as_chunks::<WORDS>();
        let recalled = all.iter().map(end_of).collect();
        let ends = Ends {
            copies,
            known: HashMap::new(),
            due: Instant::now(),
            last: list,
        };
        Ok((ends, recalled))
    }

    /// Takes in an end that the control core showed.
    pub(super) fn see(&mut self, end: &LooseEnd) {
        if self.known.len() < MOST {
            self.known.insert(words_of(end), end.seen);
        }
    }

    /// Leaves what is known now; seldom enough that it takes a small share of the time.
    ///
    /// # Errors
    /// Nothing more can be left.
    pub(super) fn leave(&mut self, store: &Store, now: Nanos) -> io::Result<()> {
        let begun = Instant::now();
        if begun < self.due {
            return Ok(());
        }
        self.known.retain(|words, seen| {
            LooseEnd {
                seen: *seen,
                ..end_of(words)
            }
            .is_known(now)
        });
        let mut all: Vec<Words> = self.known.keys().copied().collect();
        all.sort_unstable();
        let list = all.into_flattened();
        if list != self.last {
            self.copies.write(store, &list)?;
            self.last = list;
        }
        self.due = begun + EVERY.max(begun.elapsed() * SHARE);
        Ok(())
    }
}

fn words_of(end: &LooseEnd) -> Words {
    let [a, b, c, d] = words(end.key.src(), end.key.dst());
    let number = u64::from(end.key.dest_qp().get()) << 32;
    let port = u64::from(end.port) << 16;
    [a, b, c, d, number | port | u64::from(end.is_uc)]
}

fn end_of([a, b, c, d, more]: &Words) -> LooseEnd {
    let Addresses { src, dst } = addresses([*a, *b, *c, *d]);
    let part = |shift: u32, mask: u64| more >> shift & mask;
    let number = u32::try_from(part(32, 0x00ff_ffff)).unwrap_or_default();
    LooseEnd {
        key: FlowKey::new(src, dst, Qpn::new(number)),
        port: u16::try_from(part(16, 0xffff)).unwrap_or_default(),
        is_uc: part(0, 1) == 1,
        seen: Nanos::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(src: &str, dst: &str, qpn: u32, port: u16, is_uc: bool) -> LooseEnd {
        LooseEnd {
            key: FlowKey::new(src.parse().unwrap(), dst.parse().unwrap(), Qpn::new(qpn)),
            port,
            is_uc,
            seen: Nanos::ZERO,
        }
    }

    #[test]
    fn an_end_of_either_family_comes_back_from_words() {
        for one in [
            end("10.0.1.3", "10.0.2.2", 0x00ff_ffff, 0xffff, false),
            end("2001:db8::1", "fe80::7", 2, 1, true),
        ] {
            assert_eq!(end_of(&words_of(&one)), one);
        }
    }

    #[test]
    fn what_is_left_is_what_is_still_known() {
        let store = Store::default();
        let (mut ends, recalled) = Ends::open(&store, &mut |line| panic!("{line}")).unwrap();
        assert_eq!(recalled, []);
        let one = end("10.0.1.3", "10.0.2.2", 0x11, 50_000, false);
        let other = end("10.0.1.3", "10.0.2.2", 0x12, 50_001, false);
        let seconds = |n: u64| Nanos::from_millis(n * 1_000);
        ends.see(&LooseEnd {
            seen: seconds(1),
            ..one
        });
        ends.see(&LooseEnd {
            seen: seconds(4),
            ..other
        });
        let mut left = |now| {
            ends.due = Instant::now();
            ends.leave(&store, now).unwrap();
            ends.last.clone()
        };
        assert_eq!(left(seconds(5)).len(), 2 * WORDS);
        assert_eq!(left(seconds(8)), words_of(&other));
        assert_eq!(left(seconds(20)).len(), 0);
    }
}
