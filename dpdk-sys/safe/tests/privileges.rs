//! Every thread drops its privileges, whatever it does. Skips where the process has none.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]

use npcc_testkit::skip::skipped;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use npcc_dpdk::{Capability, Ids, Privileges, keep_privileges};

/// Returns this line of each thread's status, as the kernel shows it.
fn lines(name: &str) -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    let status = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).ok();
    let all = tasks.filter_map(|task| status(task.unwrap().path()));
    all.map(of).collect()
}

/// Returns this set of capabilities of each thread.
fn sets(name: &str) -> Vec<u64> {
    let lines = lines(name).into_iter();
    lines
        .map(|line| u64::from_str_radix(&line, 16).unwrap())
        .collect()
}

/// Returns the permitted capabilities of each thread.
fn permitted() -> Vec<u64> {
    sets("CapPrm:")
}

/// Returns true if every thread is this user, with its groups and no others, and its permitted capabilities are in force.
fn is_wholly(ids: &Ids) -> bool {
    let four = |id: u32| [id; 4].map(|id| id.to_string()).join("\t");
    let mut groups = ids.groups.clone();
    groups.sort_unstable();
    let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
    let all = |name: &str, expected: &str| lines(name).iter().all(|line| line == expected);
    all("Uid:", &four(ids.user))
        && all("Gid:", &four(ids.group))
        && all("Groups:", &groups.join(" "))
        && sets("CapEff:") == permitted()
}

#[test]
fn all_threads_keep_what_is_kept_and_nothing_else() {
    let admin = 1 << Capability::NetAdmin as u8;
    let before = permitted();
    if before.iter().any(|set| set & admin == 0 || *set == admin) {
        skipped("privileges", "root");
        return;
    }
    const SETPCAP: u64 = 1 << 8;
    let bounds = sets("CapEff:").iter().all(|set| set & SETPCAP != 0);
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let spin = Arc::clone(&stop);
    let spinning = std::thread::spawn(move || {
        while !spin.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        fs::read(secret).map_err(|error| error.kind())
    });
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || wait.recv());
    let sleeping = std::thread::spawn(|| {
        let begin = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(500));
        begin.elapsed()
    });
    let ids = Ids {
        user: 65_534,
        group: 65_533,
        groups: vec![65_533, 60],
    };
    let keep = |capabilities| {
        keep_privileges(Privileges {
            capabilities,
            user: Some(&ids),
            ruleset: None,
        })
    };
    keep(&[Capability::NetAdmin]).unwrap();
    assert!(
        is_wholly(&ids),
        "{:?} {:?}",
        lines("Uid:"),
        lines("Groups:")
    );
    let after = permitted();
    assert!(after.len() >= 4, "{after:x?}");
    assert!(after.iter().all(|set| *set == admin), "{after:x?}");
    let bounding = sets("CapBnd:");
    let is_bounded = bounding.iter().all(|set| *set == admin);
    assert!(is_bounded || !bounds, "{bounding:x?}");
    // No capability comes back, and no thread was disturbed.
    keep(&[Capability::NetAdmin, Capability::NetRaw]).unwrap();
    assert!(permitted().iter().all(|set| *set == admin));
    assert!(is_wholly(&ids));
    let later = std::thread::spawn(permitted).join().unwrap();
    assert!(later.iter().all(|set| *set == admin), "{later:x?}");
    assert!(sleeping.join().unwrap() >= Duration::from_millis(500));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(spinning.join().unwrap(), Err(ErrorKind::PermissionDenied));
    // A core is still written, and the process still reads its own files.
    assert!(fs::read_dir("/proc/self/fd").is_ok());
    end.send(()).unwrap();
    waiting.join().unwrap().unwrap();
}
