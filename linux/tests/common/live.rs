//! Namespace for one test, with TAPs on which a thread answers ARP and ND.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use npcc_linux::netlink::handle::{Handle, Notice};
use npcc_linux::netlink::report::Report;
use npcc_linux::netlink::wants::{StaticRoute, Wanted};
use npcc_linux::tap::{Tap, TapPort, namespace};
use npcc_linux::{Integration, Running, Settings};
use npcc_pipeline::units::{Mac, PortId};
use npcc_testkit::wait;

use super::{Book, Shared};

/// Hosts that answer on the TAPs: addresses and their MAC addresses.
pub type Hosts = Arc<Mutex<BTreeMap<IpAddr, Mac>>>;

/// Namespace of a test with two ports, and a VLAN on the first.
pub struct Live {
    pub name: String,
    pub book: Shared,
    pub hosts: Hosts,
    pub notices: Arc<Mutex<Vec<Notice>>>,
    running: Option<Running>,
    answering: Arc<AtomicBool>,
    answerer: Option<JoinHandle<()>>,
}

/// The MAC address of port `n`.
pub const fn port_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, n])
}

/// The MAC address of host `n`.
pub const fn host_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, n])
}

impl Live {
    /// Ports `p0` (10.0.0.1/24, 2001:db8::1/64) and `p1` (10.0.1.1/24, 2001:db8:1::1/64), VLAN `p0.7` (10.0.7.1/24); hosts .2
    /// on each.
    pub fn open(test: &str) -> Live {
        Live::with(test, 16 << 20, vec![])
    }

    pub fn with(test: &str, receive_buffer: usize, routes: Vec<StaticRoute>) -> Live {
        let name = format!("npcc-{test}-{}", std::process::id());
        let port = |name: &str, port, vlan| TapPort {
            name: name.to_owned(),
            port: PortId(port),
            vlan,
            mac: port_mac(port),
            mtu: 9000,
        };
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let addresses = BTreeMap::from([
            ("p0".to_owned(), nets(&["10.0.0.1/24", "2001:db8::1/64"])),
            ("p1".to_owned(), nets(&["10.0.1.1/24", "2001:db8:1::1/64"])),
            ("p0.7".to_owned(), nets(&["10.0.7.1/24"])),
        ]);
        let settings = Settings {
            namespace: Some(name.clone()),
            receive_buffer,
            compare_every: Duration::from_secs(10),
            ports: vec![port("p0", 0, 0), port("p1", 1, 0), port("p0.7", 0, 7)],
            wanted: Wanted {
                addresses,
                neighbors: vec![],
                routes,
            },
        };
        let mut integration =
            Integration::open(settings).expect("root, and a kernel with namespaces");
        let taps = integration.take_taps();
        let hosts: Hosts = Arc::default();
        for (n, address) in (2u8..).zip([
            "10.0.0.2",
            "10.0.1.2",
            "2001:db8::2",
            "2001:db8:1::2",
            "10.0.7.2",
        ]) {
            hosts
                .lock()
                .unwrap()
                .insert(address.parse().unwrap(), host_mac(n));
        }
        let answering = Arc::new(AtomicBool::new(true));
        let answerer = {
            let (hosts, answering) = (Arc::clone(&hosts), Arc::clone(&answering));
            std::thread::spawn(move || answer(&taps, &hosts, &answering))
        };
        let book = Shared::default();
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let reported = Arc::clone(&notices);
        let running = integration.run(book.clone(), move |notice| {
            reported.lock().unwrap().push(notice)
        });
        let live = Live {
            name,
            book,
            hosts,
            notices,
            running: Some(running.unwrap()),
            answering,
            answerer: Some(answerer),
        };
        live.until("the first dump", |_| {
            live.handle().status().compared.is_some()
        });
        live
    }

    pub fn handle(&self) -> &Handle {
        self.running.as_ref().unwrap().handle()
    }

    /// Runs `ip` in the namespace.
    pub fn ip(&self, arguments: &str) {
        let done = Command::new("ip")
            .args(["-n", &self.name])
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "ip {arguments}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Returns the output of `ip` in the namespace.
    pub fn ip_says(&self, arguments: &str) -> String {
        let done = Command::new("ip")
            .args(["-n", &self.name])
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    /// Runs many `ip` commands at once.
    pub fn batch(&self, lines: impl Iterator<Item = String>) {
        let ip = Command::new("ip")
            .args(["-n", &self.name, "-force", "-batch", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut ip = ip.unwrap();
        let mut input = std::io::BufWriter::new(ip.stdin.take().unwrap());
        for line in lines {
            // A line of a batch takes no options; the family is the prefix's.
            writeln!(input, "{}", line.trim_start_matches("-6 ")).unwrap();
        }
        drop(input);
        ip.wait().unwrap();
    }

    /// Waits until a condition holds for the book.
    pub fn until(&self, what: &str, holds: impl Fn(&Book) -> bool) -> Duration {
        let began = Instant::now();
        let awaited = || {
            let notices = self.notices.lock().unwrap();
            let tail: Vec<_> = notices.iter().rev().take(4).collect();
            format!("{what}: {:?}; {tail:#?}", self.handle().status())
        };
        let step = Duration::from_millis(2);
        wait::every(step, wait::LONG, awaited, || {
            holds(&self.book.0.lock().unwrap()).then_some(())
        });
        began.elapsed()
    }

    /// Compares with the kernel: nothing differs, and the installed state is the desired one.
    pub fn equal(&self, when: &str) -> Report {
        let awaited = || format!("{when}: a whole comparison: {:#?}", self.handle().compare());
        let report = wait::value(wait::LONG, awaited, || {
            let report = self.handle().compare().unwrap();
            (report.settled && report.whole).then_some(report)
        });
        assert_eq!(report.differences, 0, "{when}: {report:#?}");
        let wrong = self.handle().verify().unwrap();
        assert!(wrong.is_empty(), "{when}: {wrong:?}");
        report
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.running.take());
        self.answering.store(false, Ordering::Relaxed);
        if let Some(answerer) = self.answerer.take() {
            let _ = answerer.join();
        }
        let _ = namespace::remove(&self.name);
    }
}

/// Answers ARP and ND for the hosts, until stopped. It holds the TAPs.
fn answer(taps: &[Tap], hosts: &Hosts, answering: &AtomicBool) {
    let mut frame = [0; 9100];
    while answering.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd<'_>> = taps
            .iter()
            .map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN))
            .collect();
        poll(&mut fds, PollTimeout::from(20u8)).unwrap();
        for tap in taps {
            while let Ok(len) = tap.recv(&mut frame) {
                let reply =
                    arp(&frame[..len], hosts).or_else(|| solicitation(&frame[..len], hosts));
                if let Some(reply) = reply {
                    let _ = tap.send(&reply);
                }
            }
        }
    }
}

fn arp(frame: &[u8], hosts: &Hosts) -> Option<Vec<u8>> {
    if frame.get(12..22)? != [8, 6, 0, 1, 8, 0, 6, 4, 0, 1] {
        return None;
    }
    let target: [u8; 4] = frame.get(38..42)?.try_into().ok()?;
    let mac = *hosts
        .lock()
        .unwrap()
        .get(&IpAddr::V4(Ipv4Addr::from(target)))?;
    let asker = frame.get(22..32)?;
    let mut reply = [
        &frame[6..12],
        &mac.0,
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
        &mac.0,
        &target,
        asker,
    ]
    .concat();
    reply.resize(60, 0);
    Some(reply)
}

fn solicitation(frame: &[u8], hosts: &Hosts) -> Option<Vec<u8>> {
    if frame.get(12..14)? != [0x86, 0xdd] || *frame.get(20)? != 58 || *frame.get(54)? != 135 {
        return None;
    }
    let target: [u8; 16] = frame.get(62..78)?.try_into().ok()?;
    let mac = *hosts
        .lock()
        .unwrap()
        .get(&IpAddr::V6(Ipv6Addr::from(target)))?;
    let asker = frame.get(22..38)?;
    // A neighbour advertisement, solicited, with the target's address; the checksum is over it and the pseudo header.
    let mut body = [&[136, 0, 0, 0, 0x60, 0, 0, 0][..], &target, &[2, 1], &mac.0].concat();
    let pseudo = [&target[..], asker, &[0, 0, 0, 32, 0, 0, 0, 58]].concat();
    let words = pseudo.chunks(2).chain(body.chunks(2));
    let mut sum: u32 = words
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    body[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let head = [0x60, 0, 0, 0, 0, 32, 58, 255];
    Some(
        [
            &frame[6..12],
            &mac.0,
            &[0x86, 0xdd],
            &head,
            &target,
            asker,
            &body,
        ]
        .concat(),
    )
}

impl Live {
    /// Sets a sysctl under `/proc/sys/net` of the namespace.
    pub fn sysctl(&self, path: &str, value: &str) {
        let write = format!("echo {value} > /proc/sys/net/{path}");
        let done = Command::new("ip")
            .args(["netns", "exec", &self.name, "sh", "-c", &write])
            .status();
        assert!(done.unwrap().success(), "{path}");
    }

    /// Returns the value of a sysctl under `/proc/sys/net` of the namespace.
    pub fn sysctl_of(&self, path: &str) -> String {
        let done = Command::new("ip")
            .args(["netns", "exec", &self.name, "cat"])
            .arg(format!("/proc/sys/net/{path}"))
            .output();
        String::from_utf8(done.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }
}

impl Live {
    /// Waits until the stream has been quiet for a while.
    pub fn settle(&self) {
        let mut before = self.handle().status().counts.messages;
        loop {
            std::thread::sleep(Duration::from_millis(30));
            let now = self.handle().status().counts.messages;
            if now == before {
                return;
            }
            before = now;
        }
    }
}
