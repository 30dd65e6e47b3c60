//! Tests of the heap under a program's own collections.

use npcc_heap::{HugeHeap, LARGE};

#[global_allocator]
static HEAP: HugeHeap = HugeHeap;

/// Returns the KiB of this process in transparent huge pages.
fn huge() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("AnonHugePages"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn large_pieces_are_zero_aligned_and_huge_where_the_kernel_allows() {
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let allowed = mode.is_ok_and(|mode| !mode.contains("[never]"));
    let mut piece = vec![0u8; 16 * LARGE + 1];
    assert_eq!(piece.as_ptr().align_offset(LARGE), 0);
    assert!(piece.iter().all(|byte| *byte == 0));
    piece.iter_mut().for_each(|byte| *byte = 7);
    assert!(piece.iter().all(|byte| *byte == 7));
    if allowed {
        let huge = huge().unwrap();
        assert!(huge >= 8 * 2048, "{huge} KiB");
    }
}

#[test]
fn what_is_not_touched_costs_nothing() {
    let piece = vec![0u64; 1 << 34];
    assert_eq!(piece.get(1 << 33), Some(&0));
}

#[test]
fn pieces_keep_their_content_as_they_grow_and_shrink() {
    let mut numbers: Vec<u32> = Vec::new();
    for n in 0..3_000_000 {
        numbers.push(n);
    }
    for keep in [2_000_000, 600_000, 500_000, 10] {
        numbers.truncate(keep);
        numbers.shrink_to_fit();
        assert!((0..).zip(&numbers).all(|(n, number)| n == *number));
        assert_eq!(numbers.len(), keep);
    }
    numbers.extend(10..1_000_000);
    assert!((0..1_000_000).eq(numbers));
}

#[test]
fn pieces_come_and_go_on_several_threads() {
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                for n in 0..50usize {
                    let piece = vec![thread; LARGE + n * 5_000];
                    assert!(piece.iter().step_by(1_000).all(|byte| *byte == thread));
                }
            });
        }
    });
}

#[test]
fn a_strict_alignment_is_kept() {
    #[repr(align(4096))]
    #[derive(Clone)]
    struct Page([u8; 4096]);
    let pages = vec![Page([1; 4096]); 1024];
    assert_eq!(pages.as_ptr().align_offset(4096), 0);
    assert!(pages.iter().all(|page| page.0[4095] == 1));
}

/// Returns the page faults of this thread that needed no disk: field 10 of proc_pid_stat(5), the eighth behind the name.
#[allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]
fn faults() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').nth(7).unwrap().parse().unwrap()
}

/// Earlier defect: every free of 2 MiB was a munmap, which interrupts every core that runs a thread of the process.
#[test]
fn a_freed_mapping_is_the_next_piece_of_its_size() {
    let size = 3 * LARGE + 12_345;
    let again = || {
        drop(vec![7u8; size]);
        assert!(vec![0u8; size].iter().all(|byte| *byte == 0));
    };
    again();
    let before = faults();
    (0..100).for_each(|_| again());
    // A mapping made anew faults at least once for each of its four huge pages. Another test's thread may take the kept one.
    assert!(faults() - before < 400, "{} faults", faults() - before);
    let many: Vec<Vec<u8>> = (0..2 * npcc_heap::KEPT).map(|_| vec![1; size]).collect();
    drop(many);
    let large = vec![1u8; npcc_heap::KEPT_BYTES + 1];
    drop(large);
    assert_eq!(vec![0u8; npcc_heap::KEPT_BYTES + 1].iter().max(), Some(&0));
}
