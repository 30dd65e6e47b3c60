//! The left-right handshake under every interleaving loom can find: `RUSTFLAGS="--cfg loom" cargo test -p npcc-pipeline --test loom_handshake --release`.
//!
//! What this does not prove: anything about the images themselves, which are plain data between two handshakes.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use npcc_pipeline::route::fib::Handshake;

/// A reader that entered a pair never sees the writer change it before it enters again.
#[test]
fn no_one_reads_what_is_being_written() {
    loom::model(|| {
        let handshake = Arc::new(Handshake::new(1));
        // Each pair holds two words that are only ever changed together.
        let pairs = Arc::new([
            [AtomicUsize::new(0), AtomicUsize::new(0)],
            [AtomicUsize::new(1), AtomicUsize::new(1)],
        ]);
        let reader = {
            let (handshake, pairs) = (Arc::clone(&handshake), Arc::clone(&pairs));
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    let pair = &pairs[handshake.enter(0)];
                    let first = pair[0].load(Ordering::Relaxed);
                    let second = pair[1].load(Ordering::Relaxed);
                    assert_eq!(first, second, "half of a table");
                }
            })
        };
        handshake.swap();
        if handshake.quiet() {
            let spare = &pairs[handshake.spare()];
            spare[0].store(2, Ordering::Relaxed);
            spare[1].store(2, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
}
