//! Tests of a carrier on links of the kernel, in a network namespace of the test, in the sandbox of a running switch.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, unshare};
use npcc_linux::netlink::requests::Requests;
use npcc_linux::tap::{Tap, TapPort};
use npcc_linux::wire::request::{LinkSettings, set_link};
use npcc_pipeline::units::{Mac, PortId};

use super::*;
use crate::sandbox;

/// Network namespace of the calling thread alone, with a process in it that has its sysfs.
struct Space {
    holder: Child,
    requests: Requests,
}

impl Space {
    fn new() -> Space {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let mounts = "mount -t sysfs sysfs /sys && echo && exec sleep 300";
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", mounts])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mounted = holder.stdout.as_mut().unwrap().read_exact(&mut [0]);
        mounted.unwrap();
        Space {
            holder,
            requests: Requests::open().unwrap(),
        }
    }

    /// Returns the folder of the namespace's interfaces.
    fn net(&self) -> PathBuf {
        format!("/proc/{}/root/sys/class/net", self.holder.id()).into()
    }

    fn ip(&self, words: &str) {
        let words = words.split_whitespace();
        assert!(Command::new("ip").args(words).status().unwrap().success());
    }

    fn index(&self, name: &str) -> u32 {
        let file = self.net().join(name).join("ifindex");
        std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// Switches an interface on or off; the kernel has done it when this returns.
    fn switch(&mut self, index: u32, up: bool) {
        let settings = LinkSettings {
            up: Some(up),
            ..LinkSettings::default()
        };
        self.requests.ask(set_link(index, &settings)).unwrap();
    }

    /// Sets an interface's carrier; the kernel has done it when this returns.
    fn carry(&mut self, index: u32, carrier: bool) {
        let settings = LinkSettings {
            carrier: Some(carrier),
            ..LinkSettings::default()
        };
        self.requests.ask(set_link(index, &settings)).unwrap();
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Link thread in the sandbox, whose turns and clock are the test's.
struct LinkThread {
    turns: Sender<Instant>,
    reports: Receiver<(LinkReport, usize)>,
    thread: Option<JoinHandle<()>>,
    now: Instant,
}

impl LinkThread {
    /// Follows an interface; its driver says that the link is up whenever it is called.
    fn of(net: PathBuf, interface: u32) -> LinkThread {
        let (turns, due) = channel();
        let (report, reports) = channel();
        let thread = std::thread::spawn(move || {
            sandbox::around_this_thread();
            let mut carrier = Carrier::under(&net, interface);
            for now in due {
                let mut calls = 0;
                let link = carrier.report(now, || {
                    calls += 1;
                    UP
                });
                report.send((link, calls)).unwrap();
            }
        });
        LinkThread {
            turns,
            reports,
            thread: Some(thread),
            now: Instant::now(),
        }
    }

    /// Takes a turn, 10 ms after the one before; returns the link, and the number of calls of the driver.
    fn turn(&mut self) -> (LinkReport, usize) {
        self.now += Duration::from_millis(10);
        self.turns.send(self.now).unwrap();
        self.reports.recv().unwrap()
    }

    fn up(&mut self) -> bool {
        self.turn().0.up
    }
}

impl Drop for LinkThread {
    fn drop(&mut self) {
        self.turns = channel().0;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

/// Folder with an interface `lo`, as sysfs has it; the loopback interface has index 1 in every network namespace.
struct FakeNet {
    folder: tempfile::TempDir,
    carrier: Carrier,
    start: Instant,
}

impl FakeNet {
    /// Has an interface of this index.
    fn new(index: &str) -> FakeNet {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lo")).unwrap();
        let carrier = Carrier::under(folder.path(), 1);
        let net = FakeNet {
            folder,
            carrier,
            start: Instant::now(),
        };
        let files = [
            ("ifindex", index),
            ("carrier_changes", "0"),
            ("carrier_down_count", "0"),
        ];
        for (name, text) in files {
            net.write(name, text);
        }
        net
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("lo").join(name), text).unwrap();
    }

    /// Returns the link so many milliseconds after the start, and the number of calls of the driver, which says that it is up.
    fn report(&mut self, millis: u64) -> (LinkReport, usize) {
        let mut calls = 0;
        let link = self
            .carrier
            .report(self.start + Duration::from_millis(millis), || {
                calls += 1;
                UP
            });
        (link, calls)
    }
}

const UP: LinkReport = LinkReport {
    up: true,
    mbps: Some(100_000),
    reason: DownReason::None,
};

#[test]
fn of_a_thousand_flaps_of_a_veth_none_is_missed_and_each_is_seen_in_one_turn() {
    let mut space = Space::new();
    space.ip("link add v0 type veth peer name v1");
    let (v0, v1) = (space.index("v0"), space.index("v1"));
    space.switch(v0, true);
    space.switch(v1, true);
    let mut link = LinkThread::of(space.net(), v0);
    assert!(link.up());
    for flap in 0..1_000 {
        space.switch(v1, false);
        assert!(!link.up(), "flap {flap} is missed");
        space.switch(v1, true);
        assert!(link.up(), "the link is back after flap {flap}");
    }
    // One that is over within a turn is reported too.
    for flap in 0..1_000 {
        space.switch(v1, false);
        space.switch(v1, true);
        assert!(!link.up(), "short flap {flap} is missed");
        assert!(link.up(), "the link is back after short flap {flap}");
    }
    space.switch(v0, false);
    assert!(!link.up(), "the interface itself is off");
    space.switch(v0, true);
    assert!(link.up());
    // A renamed interface is the same link.
    space.switch(v0, false);
    space.ip("link set dev v0 name v2");
    space.switch(v0, true);
    assert!(!link.up(), "it was off meanwhile");
    assert!(link.up());
}

/// The kernel reports the second loss of carrier within a second late, by netlink and in `IFF_RUNNING`, on every interface but those that
/// stand on another, as a veth.
#[test]
fn a_loss_that_the_kernel_reports_late_is_seen_in_one_turn() {
    let mut space = Space::new();
    let port = TapPort {
        name: "t0".to_owned(),
        mac: Mac([2, 0, 0, 0, 0, 1]),
        mtu: 1_500,
        port: PortId(0),
        vlan: 0,
    };
    let _tap = Tap::open(port, &mut space.requests).unwrap();
    let t0 = space.index("t0");
    let mut link = LinkThread::of(space.net(), t0);
    assert!(link.up());
    for flap in 0..100 {
        space.carry(t0, false);
        assert!(!link.up(), "flap {flap} is missed");
        space.carry(t0, true);
        assert!(link.up(), "the link is back after flap {flap}");
    }
}

/// Law: a link without carrier is down, also when its driver is due again and reports it up.
#[test]
fn a_link_without_carrier_stays_down_whatever_its_driver_says() {
    let mut net = FakeNet::new("1");
    net.write("carrier", "0");
    for second in 0..4 {
        assert_eq!(
            net.report(second * 1_000),
            (LinkReport::down(DownReason::Link), 0)
        );
    }
    net.write("carrier", "1");
    net.write("carrier_changes", "1");
    assert_eq!(net.report(4_000), (UP, 1));
}

/// Law: the folder may show another network namespace, whose interface of the same name is another one.
#[test]
fn the_files_of_another_interface_are_not_read() {
    let mut net = FakeNet::new("7");
    net.write("carrier", "0");
    assert_eq!(net.report(0), (UP, 1));
}

#[test]
fn a_missing_interface_is_looked_for_once_a_second() {
    let mut net = FakeNet::new("1");
    net.write("carrier", "0");
    let (shown, hidden) = (
        net.folder.path().join("lo"),
        net.folder.path().join("hidden"),
    );
    std::fs::rename(&shown, &hidden).unwrap();
    assert_eq!(net.report(0), (UP, 1));
    std::fs::rename(&hidden, &shown).unwrap();
    assert_eq!(net.report(999), (UP, 1));
    assert_eq!(net.report(1_000).1, 0);
}

#[test]
fn a_link_that_does_not_change_is_read_from_its_driver_once_a_second() {
    let mut space = Space::new();
    space.ip("link add v0 type veth peer name v1");
    let (v0, v1) = (space.index("v0"), space.index("v1"));
    space.switch(v0, true);
    space.switch(v1, true);
    let mut link = LinkThread::of(space.net(), v0);
    let calls: Vec<usize> = (0..301).map(|_| link.turn().1).collect();
    assert_eq!(calls.iter().sum::<usize>(), 4, "{calls:?}");
    // The driver of an interface that sysfs does not show is called in each turn.
    space.ip("link del v0");
    assert!((0..200).all(|_| link.turn() == (UP, 1)));
}
