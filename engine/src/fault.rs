//! Fault injection, for tests of how the switch handles faults: `NPCC_FAULT=PLACE` in the environment of a debug build. A release build has
//! none.

#[cfg(debug_assertions)]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns true if a fault is injected at this place.
#[cfg(debug_assertions)]
#[must_use]
pub fn strikes(place: &str) -> bool {
    static PLACE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("NPCC_FAULT").ok());
    PLACE.as_deref() == Some(place)
}

/// Returns true if a fault is injected at this place: never in a release build.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn strikes(_: &str) -> bool {
    false
}

/// Returns true if a fault is injected at this place, the first time only.
#[must_use]
pub fn strikes_once(place: &str) -> bool {
    static STRUCK: AtomicBool = AtomicBool::new(false);
    strikes(place) && !STRUCK.swap(true, Ordering::Relaxed)
}

/// Panics if a fault is injected at this place.
///
/// # Panics
/// In debug builds, on request.
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn panics(place: &str) {
    if strikes(place) {
        panic!("a fault was asked for at `{place}`");
    }
}

/// Aborts the process without a message, if a fault is injected at this place, once the file named by `NPCC_FAULT_UNTIL` exists.
pub fn aborts(place: &str) {
    if strikes(place) && is_time() {
        std::process::abort();
    }
}

/// Tries calls that the sandbox forbids and logs their results, if a fault is injected at this place, once the file named by
/// `NPCC_FAULT_UNTIL` exists.
pub fn forbidden(place: &str) {
    if !strikes(place) || !is_time() || !strikes_once(place) {
        return;
    }
    let program = std::process::Command::new("/bin/true").status();
    let program = program.map_err(|error| error.kind());
    crate::log::note(&format!("forbidden: a program: {program:?}"));
    let raw = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Packet,
        nix::sys::socket::SockType::Raw,
        nix::sys::socket::SockFlag::empty(),
        None,
    );
    crate::log::note(&format!("forbidden: a packet socket: {raw:?}"));
    let outward = std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, 9));
    let outward = outward.map_err(|error| error.kind());
    crate::log::note(&format!("forbidden: a connection: {outward:?}"));
    // A file and a socket that only root may use, and a file that every user may read and the switch has no need of.
    let until = std::env::var_os("NPCC_FAULT_UNTIL").unwrap_or_default();
    let beside = |name| std::path::Path::new(&until).with_file_name(name);
    let file = std::fs::read(beside("secret")).map_err(|error| error.kind());
    crate::log::note(&format!("forbidden: a file of root: {file:?}"));
    let socket = std::os::unix::net::UnixStream::connect(beside("secret.sock"));
    let socket = socket.map(drop).map_err(|error| error.kind());
    crate::log::note(&format!("forbidden: a socket of root: {socket:?}"));
    let program = std::fs::File::open("/bin/true").map(drop);
    let program = program.map_err(|error| error.kind());
    crate::log::note(&format!("forbidden: a file without need: {program:?}"));
    let moved = std::os::unix::fs::chroot("/");
    crate::log::note(&format!(
        "forbidden: another root: {:?}",
        moved.map_err(|error| error.kind())
    ));
}

/// Returns true if the file named by `NPCC_FAULT_UNTIL` exists.
fn is_time() -> bool {
    let until = std::env::var_os("NPCC_FAULT_UNTIL").unwrap_or_default();
    std::path::Path::new(&until).exists()
}

/// Stays here for a minute and says so in the log, if a fault is injected at this place.
pub fn hangs(place: &str) {
    if strikes(place) {
        crate::log::note(&format!("a fault was injected: `{place}` hangs"));
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Waits here until the file named by `NPCC_FAULT_UNTIL` exists, if a fault is injected at this place; a minute at most.
pub fn waits(place: &str) {
    if !strikes(place) {
        return;
    }
    let pause = Duration::from_millis(10);
    for _ in 0..6_000 {
        if is_time() {
            return;
        }
        std::thread::sleep(pause);
    }
}
