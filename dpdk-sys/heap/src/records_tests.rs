use super::*;
use proptest::prelude::*;

const PLACE: Place = Place {
    first: 8,
    slots: 5,
    width: HEAD + 3,
};

/// Record `n` is `n` words long, at most three, and each of them contains its number.
fn record(number: u64) -> Vec<u64> {
    (0..number.min(3)).map(|n| number * 100 + n).collect()
}

fn written(records: u64) -> (Arc<Vec<AtomicU64>>, Ring) {
    let memory = Arc::new((0..8 + PLACE.words()).map(|_| AtomicU64::new(0)).collect());
    let ring = Ring::new(Arc::clone(&memory) as Arc<dyn Words>, PLACE);
    (1..=records).for_each(|n| ring.push(record(n)));
    (memory, ring)
}

fn copy(memory: &[AtomicU64]) -> Vec<u64> {
    memory
        .iter()
        .map(|word| word.load(Ordering::Relaxed))
        .collect()
}

fn numbers(records: &Records) -> Vec<u64> {
    records.whole.iter().map(|record| record.number).collect()
}

#[test]
fn the_newest_records_come_back_in_order_and_their_numbers_count_the_overwritten() {
    let (memory, ring) = written(13);
    let records = ring.read();
    assert_eq!(
        (numbers(&records), records.inconsistent),
        (vec![9, 10, 11, 12, 13], 0)
    );
    assert!(
        records
            .whole
            .iter()
            .all(|one| one.words == record(one.number))
    );
    assert_eq!(ring.written(), 13);
    assert_eq!(
        copy(&memory)[..8],
        [0; 8],
        "nothing before the ring is touched"
    );
    assert_eq!(written(0).1.read(), Records::default());
}

/// Guards the process that goes on with a ring: after the last number its next record panicked, or had number 0 and was lost.
#[test]
fn a_record_of_the_last_numbers_is_damaged() {
    for number in [u64::MAX, u64::MAX - 1, HIGHEST + 1] {
        let (memory, ring) = written(3);
        write(&memory, PLACE, number, record(1));
        assert_eq!(ring.read().inconsistent, 1);
        let next = Ring::new(memory, PLACE);
        next.push([7]);
        next.push([8]);
        assert_eq!((next.written(), next.newest().unwrap().words), (5, vec![8]));
    }
}

#[test]
fn a_ring_goes_on_after_the_records_of_the_process_before() {
    let (memory, ring) = written(7);
    drop(ring);
    let next = Ring::new(memory, PLACE);
    next.push(record(8));
    assert_eq!(numbers(&next.read()), [4, 5, 6, 7, 8]);
    next.replace([1, 2]);
    assert_eq!(
        (next.written(), next.newest().unwrap().words),
        (8, vec![1, 2])
    );
}

#[test]
fn a_record_that_is_too_long_is_cut_and_a_place_beyond_the_memory_holds_none() {
    let ring = Ring::on_heap(2, 3);
    ring.push(0..9);
    assert_eq!(ring.newest().unwrap().words, [0, 1, 2]);
    let beyond = Place {
        first: usize::MAX,
        ..PLACE
    };
    let empty = Place { slots: 0, ..PLACE };
    for place in [beyond, empty, Place { width: 2, ..PLACE }] {
        let (memory, _) = written(0);
        write(&memory, place, 1, [7]);
        assert_eq!(read(&memory, place), Records::default());
    }
}

#[test]
fn octets_come_back_from_words() {
    let octets: Vec<u8> = (1..=13).collect();
    let words: Vec<u64> = words_of(&octets).collect();
    let back = octets_of(&words);
    assert_eq!(
        (words.len(), &back[..13], &back[13..]),
        (2, &octets[..], &[0; 3][..])
    );
}

proptest! {
    /// A writer that is killed after any number of its stores, over an older record or over an empty slot.
    #[test]
    fn a_record_that_was_being_written_is_inconsistent_and_the_others_are_whole(
        before in 0..20u64,
        length in 0..4usize,
        stores in 0..PLACE.width,
    ) {
        let (memory, ring) = written(before);
        let mut half = copy(&memory);
        ring.push(std::iter::repeat_n(777, length));
        let new = copy(&memory);
        let at = usize::try_from(ring.written()).unwrap() % PLACE.slots * PLACE.width + PLACE.first;
        (half[at], half[at + 1]) = (0, u64::MAX);
        // In the writer's order after it took number and length away: the words, the sum, the length.
        let order = (at + HEAD..at + HEAD + length).chain([at + 2, at + 1]);
        for place in order.take(stores) {
            half[place] = new[place];
        }
        let half: Vec<AtomicU64> = half.into_iter().map(AtomicU64::new).collect();
        let records = read(&half, PLACE);
        let lost = u64::from(before >= PLACE.slots as u64);
        prop_assert_eq!(records.whole.len() as u64, before.min(PLACE.slots as u64) - lost);
        prop_assert_eq!(records.inconsistent, 1);
        prop_assert!(records.whole.iter().all(|one| one.words == record(one.number)));
    }

    /// A copy of memory is made word by word while the writer goes on, and memory may be damaged.
    #[test]
    fn a_slot_of_two_writes_or_with_a_damaged_word_is_inconsistent(
        before in 5..20u64,
        new in 1..=5u64,
        picked in proptest::collection::vec(any::<bool>(), PLACE.words()),
        damaged in proptest::option::of((0..PLACE.words(), 0..64)),
    ) {
        let (memory, ring) = written(before);
        let old = copy(&memory);
        (1..=new).for_each(|n| ring.push(record(before + n)));
        let mut mixed = copy(&memory);
        for (n, _) in picked.iter().enumerate().filter(|(_, is_old)| **is_old) {
            mixed[PLACE.first + n] = old[PLACE.first + n];
        }
        if let Some((at, bit)) = damaged {
            mixed[PLACE.first + at] ^= 1u64 << bit;
        }
        let mixed: Vec<AtomicU64> = mixed.into_iter().map(AtomicU64::new).collect();
        let records = read(&mixed, PLACE);
        prop_assert!(records.whole.iter().all(|one| one.words == record(one.number)));
        prop_assert_eq!(records.whole.len() + records.inconsistent, PLACE.slots);
    }
}

#[test]
fn a_reader_on_another_thread_gets_whole_records_only() {
    let ring = Arc::new(Ring::on_heap(2, 4));
    let writer = Arc::clone(&ring);
    let writes = if cfg!(miri) { 300 } else { 100_000 };
    let thread = std::thread::spawn(move || {
        (1..writes).for_each(|n| writer.push([n, n * 3, n * 5, !n]));
    });
    while !thread.is_finished() {
        for Record { number, words } in ring.read().whole {
            assert_eq!(words, [number, number * 3, number * 5, !number]);
        }
    }
    thread.join().unwrap();
    assert_eq!(ring.read().inconsistent, 0);
}
