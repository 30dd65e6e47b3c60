//! Tests of the housekeeping thread between a worker's path and interfaces of the host, which are sockets here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use npcc_pipeline::classify::Classifier;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::datapath::{Datapath, PortConfig};
use npcc_pipeline::egress::port::{EcnConfig, EgressConfig, EgressQueueConfig};
use npcc_pipeline::frame::{FrameVec, HeapFrame};
use npcc_pipeline::punt::{Place, Punt, PuntClass, PuntConfig, PuntHost, PuntPort, PuntRates};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::tap::NoTap;
use npcc_pipeline::units::{Mac, Nanos, PortId, Priority};
use npcc_testkit::wait;

use super::*;

struct Socket(UnixDatagram);

impl HostPort for Socket {
    fn recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        self.0.recv(frame)
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.0.send(frame)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes an interface, and the host's end of it.
fn interface(port: u8, vlan: u16) -> (HostInterface, UnixDatagram) {
    let (ours, hosts) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    hosts.set_nonblocking(true).unwrap();
    let place = Place {
        port: PortId(port),
        vlan,
    };
    let host = Box::new(Socket(ours));
    (HostInterface { place, host }, hosts)
}

fn punt() -> (Punt<HeapFrame>, PuntHost) {
    Punt::new(
        PuntConfig {
            rates: PuntRates {
                classes: [1_000; PuntClass::COUNT],
                asks: 10,
                icmp_errors: 10,
            },
            ports: vec![PuntPort::default()],
            control: Priority::new(6),
            ordinary: Priority::new(0),
        },
        7,
    )
}

fn read(host: &UnixDatagram) -> Vec<Vec<u8>> {
    let mut frame = [0; 2_000];
    std::iter::from_fn(|| host.recv(&mut frame).ok().map(|len| frame[..len].to_vec())).collect()
}

fn of_type(ethertype: u16, len: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(len, 7);
    frame
}

/// Returns a BGP frame from us.
fn bgp() -> Vec<u8> {
    let mut frame = of_type(0x0800, 14);
    frame.extend([
        0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 1, 1, 10, 0, 1, 3,
    ]);
    frame.extend([0x90, 0, 0, 179]);
    frame.resize(60, 0);
    frame
}

#[test]
fn what_linux_sends_goes_to_the_owner_of_its_port_control_first() {
    let (dc, dc_host) = interface(0, 0);
    let (tagged, tagged_host) = interface(1, 100);
    let stats = Arc::<LinuxStats>::default();
    let ((first, mut of_first), (second, mut of_second)) = (ring(), ring());
    let rings = vec![first, second];
    let mut from = FromHost::new(vec![dc, tagged], vec![0, 1], rings, Arc::clone(&stats)).unwrap();
    let ping = of_type(0x0800, 60);
    for frame in [&ping, &bgp(), &of_type(0x0806, 42)] {
        dc_host.send(frame).unwrap();
    }
    tagged_host.send(&of_type(0x88cc, 200)).unwrap();
    // Frames that must not leave: truncated, pause, with a tag.
    for odd in [
        of_type(0, 13),
        of_type(0x8808, 60),
        of_type(0x8100, 60),
        Vec::new(),
    ] {
        dc_host.send(&odd).unwrap();
    }
    assert_eq!(from.turn(0), 8);
    assert_eq!(
        (
            stats.sent_odd.get(),
            stats.sent_control.get(),
            stats.sent.get()
        ),
        (4, 3, 1)
    );
    let mut came = Vec::new();
    while let Some((control, place, frame)) = of_first.pop() {
        came.push((control, place.port.0, place.vlan, frame.to_vec()));
    }
    let arp = of_type(0x0806, 42);
    assert_eq!(
        came,
        [(true, 0, 0, bgp()), (true, 0, 0, arp), (false, 0, 0, ping)]
    );
    let (control, place, frame) = of_second.pop().unwrap();
    assert_eq!(
        (control, place.port.0, place.vlan, frame.len()),
        (true, 1, 100, 200)
    );
    assert!(of_second.is_empty() && of_first.is_empty());
}

#[test]
fn a_ring_without_room_and_an_interface_that_is_gone_end_nothing() {
    let (dc, host) = interface(0, 0);
    let (wan, wan_host) = interface(1, 0);
    let stats = Arc::<LinuxStats>::default();
    let (to_worker, mut frames) = ring();
    let mut from = FromHost::new(
        vec![dc, wan],
        vec![0, 0],
        vec![to_worker],
        Arc::clone(&stats),
    )
    .unwrap();
    let mut sent = 0;
    for _ in 0..1_000 {
        sent += (0..10)
            .filter(|_| host.send(&of_type(0x0800, 1_500)).is_ok())
            .count();
        from.turn(0);
    }
    let (queued, full) = (stats.sent.get(), stats.sent_full.get());
    assert_eq!(queued + full, sent as u64);
    assert_eq!(queued, (256 << 10) / 1_505);
    // Control has a ring of its own.
    host.send(&bgp()).unwrap();
    from.turn(0);
    assert!(frames.pop().unwrap().0);
    // The host's end is closed: reading may fail or end, and the other interface goes on.
    drop(host);
    for _ in 0..10 {
        from.turn(0);
    }
    while frames.pop().is_some() {}
    wan_host.send(&bgp()).unwrap();
    from.turn(0);
    assert_eq!(frames.pop().unwrap().1.port, PortId(1));
}

/// Interface that is readable and fails.
struct Gone(UnixDatagram);

impl HostPort for Gone {
    fn recv(&self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn send(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Law: an interface that fails is read once in 100 ms.
#[test]
fn an_interface_that_fails_rests() {
    let (ours, host) = UnixDatagram::pair().unwrap();
    host.send(&[0]).unwrap();
    let place = Place {
        port: PortId(0),
        vlan: 0,
    };
    let gone = HostInterface {
        place,
        host: Box::new(Gone(ours)),
    };
    let stats = Arc::<LinuxStats>::default();
    let mut from = FromHost::new(vec![gone], vec![0], vec![], Arc::clone(&stats)).unwrap();
    let begun = Instant::now();
    for _ in 0..1_000 {
        from.turn(0);
    }
    let rests = begun.elapsed().as_millis() / 100;
    let failed = u128::from(stats.host_errors.get());
    assert!(
        (1..=1 + rests).contains(&failed),
        "{failed} in {rests} rests"
    );
}

/// Makes a worker's path with one port: 10.0.1.1 is ours, the rest of 10.0.1.0/24 is not resolved.
fn path() -> (Datapath<HeapFrame, NoTap>, PuntHost) {
    let capacity = RouteCapacity {
        ipv4_routes: 4,
        ipv6_routes: 4,
        adjacencies: 4,
        groups: 4,
    };
    let (mut writer, mut readers) = RouteWriter::new(capacity, 1);
    for (address, len, kind) in [
        ([10, 0, 1, 0], 24, Kind::Unresolved),
        ([10, 0, 1, 1], 32, Kind::Local),
    ] {
        let prefix = Prefix::new(address.into(), len).unwrap();
        writer.insert(prefix, &[Adjacency::unusable(kind)]).unwrap();
    }
    writer.commit();
    let port = PortConfig {
        intake: IngressConfig {
            mac: OURS,
            mtu: 1_500,
            vlans: Box::default(),
            classifier: Classifier::all(Priority::new(0)),
        },
        egress: EgressConfig {
            rate: None,
            max_frame: 1_522,
            max_absence: Nanos::ZERO,
            queues: std::array::from_fn(|_| EgressQueueConfig::default()),
        },
        ecn: EcnConfig::OFF,
    };
    let pool = PoolConfig {
        bytes: 1 << 20,
        frames: 256,
        alpha_256: 256,
    };
    let (punt, host) = punt();
    let mut path = Datapath::new(vec![port], pool, readers.remove(0), NoTap, 1).with_punt(punt);
    path.refresh();
    (path, host)
}

const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);

/// Returns a UDP frame to 10.0.1.`host`.
fn udp(host: u8, port: u16) -> Vec<u8> {
    let craft = Craft {
        dst_mac: OURS,
        bth: None,
        ttl: 255,
        dst_port: port,
        ..Craft::roce([10, 0, 9, 9].into(), [10, 0, 1, host].into(), 0, 0, 20)
    };
    craft.frame()
}

#[test]
fn classes_reach_linux_best_first_and_next_hops_are_asked_for() {
    let (mut path, worker) = path();
    let requested = Arc::new(Mutex::new(Vec::new()));
    let resolve: Resolve = {
        let requested = Arc::clone(&requested);
        Box::new(move |ask| requested.lock().unwrap().push(*ask))
    };
    let mut to_host = ToHost::new(vec![worker], resolve);
    let (dc, host) = interface(0, 0);
    let arp = [&[0xff; 12][..], &[8, 6], &[1; 46]].concat();
    let (ping, bfd) = (udp(1, 33_434), udp(1, 3_784));
    for frame in [&ping, &arp, &bfd, &arp, &udp(7, 1)] {
        let mut burst = FrameVec::default();
        burst.push(HeapFrame::new(frame));
        path.ingress(PortId(0), &mut burst, Nanos(0));
    }
    let interfaces = [dc];
    assert_eq!(to_host.turn(&interfaces), 5);
    assert_eq!(read(&host), [bfd, arp.clone(), arp, ping.clone()]);
    let requested = requested.lock().unwrap();
    assert_eq!(
        requested[0].destination,
        std::net::IpAddr::from([10, 0, 1, 7])
    );
    // Linux's side is gone, or was never there: all frames are counted.
    drop(host);
    for interfaces in [&interfaces[..], &[]] {
        let mut burst = FrameVec::default();
        burst.push(HeapFrame::new(&ping));
        path.ingress(PortId(0), &mut burst, Nanos(1));
        assert_eq!(to_host.turn(interfaces), 1);
    }
    let stats = to_host.stats();
    let to_us = &stats.classes[PuntClass::ToUs.index()];
    assert_eq!((to_us.delivered.get(), to_us.refused.get()), (1, 1));
    assert_eq!(stats.no_interface.get(), 1);
}

#[test]
fn the_thread_sleeps_until_linux_sends_and_ends_when_stopped() {
    let (dc, host) = interface(0, 0);
    let (_punt, worker) = punt();
    let to_host = ToHost::new(vec![worker], Box::new(|_| ()));
    let (to_worker, mut frames) = ring();
    let stats = to_host.stats();
    let from_host = FromHost::new(vec![dc], vec![0], vec![to_worker], Arc::clone(&stats)).unwrap();
    let (io, stop) = (
        LinuxIo { to_host, from_host },
        Arc::new(AtomicBool::new(false)),
    );
    let thread = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || io.run(&stop))
    };
    std::thread::sleep(Duration::from_millis(100));
    let turns = stats.turns.get();
    assert!(turns < 200, "{turns} turns in 100 ms with nothing to do");
    host.send(&bgp()).unwrap();
    wait::until("the frame", wait::LONG, || !frames.is_empty());
    assert!(frames.pop().unwrap().0);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
