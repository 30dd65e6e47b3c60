//! The kernel's routes in the table that workers read, in a namespace of the test's own.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses its part, and stops at what it did not expect"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use npcc_appliance::wiring::kernel_fib::KernelFib;
use npcc_linux::netlink::handle::Handle;
use npcc_linux::netlink::wants::Wanted;
use npcc_linux::tap::{Tap, TapPort, namespace};
use npcc_linux::{Integration, Running, Settings};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::units::{Mac, PortId};
use npcc_testkit::wait;

/// Time between two turns of the worker.
const TURN: Duration = Duration::from_micros(100);

/// Two ports in a namespace of this test's, a table that follows its routes, and a worker's view of that.
pub struct Rack {
    pub space: String,
    running: Option<Running>,
    stop: Arc<AtomicBool>,
    pub reader: FibReader,
    _taps: Vec<Tap>,
}

impl Rack {
    pub fn new(test: &str, receive_buffer: usize) -> Rack {
        let space = format!("npcc-{test}-{}", std::process::id());
        let port = |name: &str, port| TapPort {
            name: name.to_owned(),
            port: PortId(port),
            vlan: 0,
            mac: Mac([2, 0, 0, 0, 0, port]),
            mtu: 1500,
        };
        let nets = |text: &[&str]| text.iter().map(|net| net.parse().unwrap()).collect();
        let settings = Settings {
            namespace: Some(space.clone()),
            receive_buffer,
            ports: vec![port("p0", 0), port("p1", 1)],
            wanted: Wanted {
                addresses: BTreeMap::from([
                    ("p0".to_owned(), nets(&["10.0.0.1/24", "2001:db8::1/64"])),
                    ("p1".to_owned(), nets(&["10.0.1.1/24", "2001:db8:1::1/64"])),
                ]),
                ..Wanted::default()
            },
            ..Settings::default()
        };
        let mut integration = Integration::open(settings).unwrap();
        let taps = integration.take_taps();
        let capacity = RouteCapacity {
            ipv4_routes: 1_000_000,
            ipv6_routes: 250_000,
            adjacencies: 65_533,
            groups: 65_533,
        };
        let (writer, mut readers) = RouteWriter::new(capacity, 1);
        let stop = Arc::new(AtomicBool::new(false));
        let fib = KernelFib::new(writer, Arc::clone(&stop));
        let running = integration.run(fib, |_| ()).unwrap();
        let mut rack = Rack {
            space,
            running: Some(running),
            stop,
            reader: readers.remove(0),
            _taps: taps,
        };
        for (port, hosts) in [
            ("p0", ["10.0.0.2", "2001:db8::2"]),
            ("p1", ["10.0.1.2", "2001:db8:1::2"]),
        ] {
            for host in hosts {
                rack.ip(&format!(
                    "neigh add {host} dev {port} lladdr 02:00:00:00:01:{} nud permanent",
                    &port[1..].repeat(2)
                ));
            }
        }
        rack.until(|rack| rack.handle().status().compared.is_some());
        rack
    }

    pub fn handle(&self) -> &Handle {
        self.running.as_ref().unwrap().handle()
    }

    pub fn ip(&self, arguments: &str) {
        let done = Command::new("ip")
            .args(["-n", &self.space])
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "ip {arguments}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Has `ip` do many things, while the table is read as a worker reads it; how long `ip` took.
    pub fn batch(&mut self, lines: impl Iterator<Item = String> + Send + 'static) -> Duration {
        let load = self.ip_batch(lines);
        while !load.is_finished() {
            self.reader.refresh();
            std::thread::sleep(TURN);
        }
        load.join().unwrap()
    }

    /// Runs [`Rack::batch`] while the worker stands still, so that the thread waits for it in the middle of a change and messages of
    /// the kernel are lost.
    pub fn batch_unread(&mut self, lines: impl Iterator<Item = String> + Send + 'static) {
        self.ip_batch(lines).join().unwrap();
    }

    fn ip_batch(
        &self,
        lines: impl Iterator<Item = String> + Send + 'static,
    ) -> JoinHandle<Duration> {
        let space = self.space.clone();
        let began = Instant::now();
        std::thread::spawn(move || {
            let ip = Command::new("ip")
                .args(["-n", &space, "-force", "-batch", "-"])
                .stdin(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let mut ip = ip.unwrap();
            let mut input = std::io::BufWriter::new(ip.stdin.take().unwrap());
            for line in lines {
                writeln!(input, "{line}").unwrap();
            }
            drop(input);
            ip.wait().unwrap();
            began.elapsed()
        })
    }

    /// Reads the table as a worker does until something holds; how long that took.
    pub fn until(&mut self, holds: impl Fn(&Rack) -> bool) -> Duration {
        let began = Instant::now();
        let handle = self.handle().clone();
        let awaited = || format!("{:?}", handle.status());
        wait::every(TURN, Duration::from_secs(120), awaited, || {
            self.reader.refresh();
            holds(self).then_some(())
        });
        began.elapsed()
    }

    /// The port of each of some flows to an address.
    pub fn ports(&self, address: &str) -> Vec<u8> {
        let group = self.reader.group(address.parse().unwrap());
        let mut ports: Vec<u8> = (0..64)
            .map(|hash| self.reader.resolve(group, || hash).port().0)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    pub fn settle(&mut self) {
        let mut last = u64::MAX;
        self.until(|_| true);
        loop {
            for _ in 0..300 {
                self.reader.refresh();
                std::thread::sleep(TURN);
            }
            let now = self.handle().status().counts.messages;
            if now == last {
                return;
            }
            last = now;
        }
    }

    /// Waits until a comparison finds nothing and all is as wanted; how long that took.
    pub fn equal_within(&mut self, most: Duration) -> Duration {
        let began = Instant::now();
        let last = RefCell::new(None);
        let awaited = || format!("{:?}", last.borrow());
        wait::every(Duration::ZERO, most, awaited, || {
            let handle = self.handle().clone();
            let requested =
                std::thread::spawn(move || (handle.compare().unwrap(), handle.verify().unwrap()));
            while !requested.is_finished() {
                self.reader.refresh();
                std::thread::sleep(TURN);
            }
            let (report, wrong) = requested.join().unwrap();
            let equal = report.differences == 0 && report.settled && wrong.is_empty();
            *last.borrow_mut() = Some(report);
            equal.then(|| began.elapsed())
        })
    }

    pub fn agrees(&mut self) {
        self.equal_within(Duration::from_secs(60));
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        // Nobody reads the table any more, so the thread is not to wait for that.
        self.stop.store(true, Ordering::Relaxed);
        drop(self.running.take());
        let _ = namespace::remove(&self.space);
    }
}

/// The prefix of number `n`: 20.0.0.0/24 and on.
pub fn v4(n: u32) -> String {
    let address = std::net::Ipv4Addr::from_bits(0x1400_0000 + (n << 8));
    format!("{address}/24")
}

/// The prefix of number `n`: 2a00::/48 and on.
pub fn v6(n: u32) -> String {
    format!("2a00:{:x}:{:x}::/48", n >> 16, n & 0xffff)
}
