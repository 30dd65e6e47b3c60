//! Every thread drops its capabilities, whatever it does. Skips where the process has none.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]

use npcc_testkit::skip::skipped;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use npcc_dpdk::{Capability, keep_capabilities};

/// Returns the permitted capabilities of each thread, as the kernel shows them.
fn permitted() -> Vec<u64> {
    sets("CapPrm:")
}

/// Returns this set of capabilities of each thread.
fn sets(name: &str) -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let status = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).ok();
    let all = tasks.filter_map(|task| status(task.unwrap().path()));
    all.map(of).collect()
}

#[test]
fn all_threads_keep_what_is_kept_and_nothing_else() {
    let admin = 1 << Capability::NetAdmin as u8;
    let before = permitted();
    if before.iter().any(|set| set & admin == 0 || *set == admin) {
        skipped("capabilities", "root");
        return;
    }
    const SETPCAP: u64 = 1 << 8;
    let bounds = sets("CapEff:").iter().all(|set| set & SETPCAP != 0);
    let stop = Arc::new(AtomicBool::new(false));
    let spin = Arc::clone(&stop);
    let spinning = std::thread::spawn(move || {
        while !spin.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || wait.recv());
    let sleeping = std::thread::spawn(|| {
        let begin = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(500));
        begin.elapsed()
    });
    keep_capabilities(&[Capability::NetAdmin]).unwrap();
    let after = permitted();
    assert!(after.len() >= 4, "{after:x?}");
    assert!(after.iter().all(|set| *set == admin), "{after:x?}");
    let bounding = sets("CapBnd:");
    let is_bounded = bounding.iter().all(|set| *set == admin);
    assert!(is_bounded || !bounds, "{bounding:x?}");
    // No capability comes back, and no thread was disturbed.
    keep_capabilities(&[Capability::NetAdmin, Capability::NetRaw]).unwrap();
    assert!(permitted().iter().all(|set| *set == admin));
    let later = std::thread::spawn(permitted).join().unwrap();
    assert!(later.iter().all(|set| *set == admin), "{later:x?}");
    assert!(sleeping.join().unwrap() >= Duration::from_millis(500));
    stop.store(true, Ordering::Relaxed);
    spinning.join().unwrap();
    end.send(()).unwrap();
    waiting.join().unwrap().unwrap();
}
