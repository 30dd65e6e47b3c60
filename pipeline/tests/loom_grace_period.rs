//! The grace period of the left-right table under every interleaving loom can find: `RUSTFLAGS="--cfg loom" cargo test -p npcc-pipeline --test loom_grace_period --release`.
//!
//! This does not prove anything about the images themselves, which are plain data between two swaps.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use npcc_pipeline::route::fib::GracePeriod;

/// A reader that entered a pair never sees the writer change it before it enters again.
#[test]
fn no_one_reads_what_is_being_written() {
    loom::model(|| {
        let grace = Arc::new(GracePeriod::new(1));
        // Each pair holds two words that are only ever changed together.
        let pairs = Arc::new([
            [AtomicUsize::new(0), AtomicUsize::new(0)],
            [AtomicUsize::new(1), AtomicUsize::new(1)],
        ]);
        let reader = {
            let (grace, pairs) = (Arc::clone(&grace), Arc::clone(&pairs));
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    let pair = &pairs[grace.enter(0)];
                    let first = pair[0].load(Ordering::Relaxed);
                    let second = pair[1].load(Ordering::Relaxed);
                    assert_eq!(first, second, "half of a table");
                }
            })
        };
        grace.swap();
        if grace.quiet() {
            let spare = &pairs[grace.spare()];
            spare[0].store(2, Ordering::Relaxed);
            spare[1].store(2, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
}
