//! Fuzz target of the memory that a process leaves for the next one: whatever is in it, a process starts, what it takes over is read alike
//! a second time, and what it then leaves comes back. Most inputs are whole records, as sums refuse nearly all others.
#![no_main]

use std::fs::{File, read_dir, read_link};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use libfuzzer_sys::fuzz_target;
use npcc_api::pairs::ListedPair;
use npcc_appliance::report::journal::Journal;
use npcc_appliance::saved::SavedState;
use npcc_appliance::saved::facts::Facts;
use npcc_engine::store::Store;
use npcc_heap::records::{self, Place};
use npcc_heap::shared::SharedWords;
use npcc_pipeline::counters::Path;

/// Kinds of memory: the name in the store, and the number of records of its ring; counters are no ring.
const KINDS: [(&str, usize); 4] = [("counters", 0), ("facts", 2), ("pairs", 2), ("audit", 256)];
/// Words before those of a layout: mark, version, number of the layout, and one to spare.
const HEAD: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    // The first process leaves memory of each kind.
    let first = SavedState::read(&Arc::default());
    first.change(|facts| facts.draining = Some(7));
    let journal = Journal::kept(&first);
    let descriptors: Vec<(String, File)> = KINDS.iter().map(|(name, _)| ((*name).to_owned(), descriptor(name))).collect();
    let mut rest = bytes;
    while let [kind, how, len, tail @ ..] = rest {
        let (some, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let at = usize::from(*kind) % KINDS.len();
        damage(&descriptors[at].1, KINDS[at].1, *how, some);
    }
    drop((first, journal));

    let (second, facts, pairs) = open(&descriptors);
    let (_, again, pairs_again) = open(&descriptors);
    assert_eq!((&facts, &pairs), (&again, &pairs_again));
    let _ = (facts.drained_for(SystemTime::now()), facts.wanted.as_ref().map(|named| named.wanted()));
    for pair in pairs {
        let _ = npcc_engine::control::pairs::pair_command(&pair, true);
    }
    let mut shown = 0;
    for live in [1, 5, 5] {
        let mut count = live;
        second.ledger.settle(Path::ROOT.then("dc0"), &mut count);
        assert!(count >= live && count >= shown);
        shown = count;
    }
    second.change(|facts| facts.draining = Some(9));
    let left = second.facts();
    let (_, found, _) = open(&descriptors);
    // Memory that was refused was replaced by new memory, whose descriptor the service manager would have.
    assert!(found == left || found == Facts::default() || facts == Facts::default());
});

/// Opens what was left as the next process does.
fn open(descriptors: &[(String, File)]) -> (SavedState, Facts, Vec<ListedPair>) {
    let handed = descriptors.iter().map(|(name, file)| (name.clone(), OwnedFd::from(file.try_clone().unwrap())));
    let saved = SavedState::read(&Arc::new(Store::of(handed.collect())));
    assert!(Journal::kept(&saved).changes().len() <= 256);
    let (facts, pairs) = (saved.facts(), saved.take_pairs());
    (saved, facts, pairs)
}

/// Returns the newest descriptor of the memory of this name.
fn descriptor(name: &str) -> File {
    let all = read_dir("/proc/self/fd").unwrap().map(|one| one.unwrap().path());
    let found = all.filter(|path| read_link(path).is_ok_and(|to| to.to_string_lossy().contains(&format!("memfd:npcc-{name} "))));
    File::options().read(true).write(true).open(found.last().unwrap()).unwrap()
}

/// Writes a record into a ring of so many slots, or words anywhere.
fn damage(file: &File, slots: usize, how: u8, some: &[u8]) {
    let memory = SharedWords::of(file.try_clone().unwrap().into()).unwrap();
    let words: Vec<u64> = records::words_of(some).collect();
    match memory.words().get(HEAD..) {
        Some(own) if slots > 0 && how & 3 != 0 => {
            let [number, words @ ..] = &words[..] else { return };
            let place = Place { first: 0, slots, width: own.len() / slots };
            records::write(own, place, (*number).max(1), words.iter().copied());
        }
        _ => {
            let [at, words @ ..] = &words[..] else { return };
            let all = memory.words();
            let at = if how & 4 == 0 { at % 16 } else { at % all.len() as u64 };
            for (place, word) in all.iter().skip(at as usize).zip(words) {
                place.store(*word, Ordering::Relaxed);
            }
        }
    }
}
