//! A switch that restarts reads the kernel's state before it has its ports, and misses no change meanwhile.
//!
//! Needs root: namespaces and TAPs of the test's own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::Shared;
use npcc_linux::netlink::ahead::Ahead;
use npcc_linux::netlink::handle::{Notice, Status};
use npcc_linux::netlink::report::{Reason, Report};
use npcc_linux::netlink::wants::Wanted;
use npcc_linux::tap::{Tap, TapPort, namespace};
use npcc_linux::{Integration, Left, Running, Settings};
use npcc_pipeline::units::{Mac, PortId};
use npcc_testkit::wait;

/// Namespace that is removed with the test.
struct Space(String);

impl Drop for Space {
    fn drop(&mut self) {
        let _ = namespace::remove(&self.0);
    }
}

impl Space {
    fn settings(&self) -> Settings {
        let port = |name: &str, port| TapPort {
            name: name.to_owned(),
            port: PortId(port),
            vlan: 0,
            mac: Mac([2, 0, 0, 0, 0, port]),
            mtu: 1500,
        };
        let nets = |text: &str| vec![text.parse().unwrap()];
        Settings {
            namespace: Some(self.0.clone()),
            ports: vec![port("p0", 0), port("p1", 1)],
            wanted: Wanted {
                addresses: BTreeMap::from([
                    ("p0".to_owned(), nets("10.0.0.1/24")),
                    ("p1".to_owned(), nets("10.0.1.1/24")),
                ]),
                ..Wanted::default()
            },
            ..Settings::default()
        }
    }

    fn batch(&self, lines: impl Iterator<Item = String>) {
        let mut ip = Command::new("ip")
            .args(["-n", &self.0, "-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = std::io::BufWriter::new(ip.stdin.take().unwrap());
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        assert!(ip.wait().unwrap().success());
    }
}

fn route(what: &str, n: u32, port: u32) -> String {
    let (high, low) = (n >> 8, n & 255);
    format!("route {what} 10.{high}.{low}.0/24 via 10.0.{port}.2 dev p{port}")
}

/// Starts the switch after another, which has left its interfaces and what it read ahead; returns it once it has compared its state.
fn after(
    space: &Space,
    (first, taps): (Integration, Vec<Tap>),
    ahead: Ahead,
) -> (Running, Status, Report) {
    let fd = |tap: &Tap| tap.as_fd().try_clone_to_owned().unwrap();
    let left = Left {
        taps: taps
            .iter()
            .map(|tap| (tap.settings().name.clone(), fd(tap)))
            .collect(),
        wanted: None,
        ahead: Some(ahead),
    };
    drop((first, taps));
    let second = Integration::after(left, space.settings()).unwrap();
    assert!(second.refused().is_empty(), "{:?}", second.refused());
    let book = Shared::default();
    let (compared, reports) = channel();
    let running = second.run(book, move |notice| {
        if let Notice::Compared(report) = notice {
            let _ = compared.send(report);
        }
    });
    let running = running.unwrap();
    let handle = running.handle();
    // A reader that sees the comparison also sees what it counted.
    let awaited = || format!("a comparison: {:?}", handle.status());
    let status = wait::value(wait::LONG, awaited, || {
        let status = handle.status();
        status.compared.is_some().then_some(status)
    });
    assert!(status.counts.dumps > 0, "{status:?}");
    let began = reports.recv_timeout(wait::LONG).unwrap();
    (running, status, began)
}

/// Law: a TAP that a process has is refused with that process.
#[test]
fn a_tap_that_a_process_has_is_refused_with_the_process() {
    let space = Space(format!("npcc-taptwice-{}", std::process::id()));
    let _first = Integration::open(space.settings()).unwrap();
    let Err(refused) = Integration::open(space.settings()) else {
        panic!("two have one TAP");
    };
    let process = format!("process {} (", std::process::id());
    let refused = refused.to_string();
    assert!(
        refused.contains("TAP p0: making it: ") && refused.contains(&process),
        "{refused}"
    );
}

/// Law: a change that comes while the state is read is applied after it, though the reading had passed its place.
#[test]
fn what_changes_while_it_is_read_ahead_is_not_missed() {
    let space = Space(format!("npcc-aheadchurn-{}", std::process::id()));
    let mut first = Integration::open(space.settings()).unwrap();
    let taps = first.take_taps();
    let neighbor = "neigh add 10.0.0.2 dev p0 lladdr 02:00:00:00:01:00 nud permanent";
    let neighbor = std::iter::once(neighbor.to_owned());
    space.batch(neighbor.chain((20_000..40_000).map(|n| route("add", n, 0))));
    // The kernel dumps the lower first.
    let ahead = std::thread::scope(|threads| {
        threads.spawn(|| space.batch((256..16_256).map(|n| route("add", n, 0))));
        std::thread::sleep(Duration::from_millis(20));
        Ahead::begin(Some(space.0.clone()), 128 << 20).unwrap()
    });
    let (running, status, _) = after(&space, (first, taps), ahead);
    assert_eq!(status.counts.overruns, 0);
    let report = running.handle().compare().unwrap();
    assert_eq!(report.differences, 0, "{report:#?}");
}

/// Restart: the old switch ends while the new one reads; routes are added, removed and changed at the same time.
fn begins_anew(test: &str, receive_buffer: usize, overruns: bool) {
    let space = Space(format!("npcc-{test}-{}", std::process::id()));
    let mut first = Integration::open(space.settings()).unwrap();
    let taps = first.take_taps();
    let neighbors = (0..2).map(|port| {
        format!("neigh add 10.0.{port}.2 dev p{port} lladdr 02:00:00:00:01:0{port} nud permanent")
    });
    space.batch(neighbors.chain((256..4_256).map(|n| route("add", n, 0))));
    let ahead = Ahead::begin(Some(space.0.clone()), receive_buffer).unwrap();
    // In the dump or after it.
    std::thread::sleep(Duration::from_millis(300));
    let changes = (256..1_256).map(|n| route("del", n, 0));
    let changes = changes.chain((1_256..2_256).map(|n| route("replace", n, 1)));
    space.batch(changes.chain((4_256..5_256).map(|n| route("add", n, 1))));
    let (running, status, began) = after(&space, (first, taps), ahead);
    let handle = running.handle();
    let counts = status.counts;
    assert_eq!(began.reason, Reason::Start);
    assert_eq!(counts.overruns > 0, overruns, "{counts:?}");
    assert!(overruns || counts.messages > 3_000, "{counts:?}");
    let report = handle.compare().unwrap();
    assert_eq!(report.differences, 0, "{report:#?}");
    let wrong = handle.verify().unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    let all = handle.routes().unwrap();
    let has = |n: u32| {
        let prefix = format!("10.{}.{}.0/24", n >> 8, n & 255);
        let row = all.iter().find(|row| row.prefix.to_string() == prefix);
        row.map(|row| row.members[0].adjacency.port)
    };
    assert_eq!((has(256), has(1_255)), (None, None));
    assert_eq!((has(1_256), has(2_255)), (Some(PortId(1)), Some(PortId(1))));
    assert_eq!((has(2_256), has(4_255)), (Some(PortId(0)), Some(PortId(0))));
    assert_eq!((has(4_256), has(5_255)), (Some(PortId(1)), Some(PortId(1))));
}

#[test]
fn what_was_read_ahead_and_what_changed_since_is_what_the_kernel_has() {
    begins_anew("ahead", 16 << 20, false);
}

#[test]
fn messages_lost_after_reading_ahead_have_all_read_again() {
    begins_anew("aheadlost", 8 << 10, true);
}
