//! Tests of rates, queues, requests for next hops, and frames sent by Linux.

use std::net::Ipv6Addr;

use super::icmp_tests::reported;
use super::punted_rig::*;
use super::*;
use crate::punt::{Place, PuntClass, PuntInterface, PuntPort, PuntRates};

/// With packets past all rates, each class gets what it gets alone, and all frames are counted.
#[test]
fn a_flood_starves_no_class() {
    let rates = PuntRates {
        classes: PuntClass::ALL.map(|class| match class {
            PuntClass::Bfd | PuntClass::Routing => 2_000,
            _ => 1_000,
        }),
        asks: 500,
        icmp_errors: 400,
    };
    let us = mac(0);
    let to_us = |ports: Vec<u8>, protocol, ttl| {
        ip(
            us,
            &packet(("10.0.1.3", "10.0.1.1"), (protocol, ttl), &[], &ports),
        )
    };
    let bfd = to_us(ports(49_152, 3784), 17, 255);
    let bgp = to_us(ports(40_000, 179), 6, 1);
    let expired = Craft {
        ttl: 1,
        ..data("10.0.2.2")
    }
    .frame();
    let arp = ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]);
    let ping = to_us(vec![8; 64], 1, 64);
    let (mut path, mut host) = with_linux(AMPLE, rates);
    let (mut came, mut reported) = ([0u64; PuntClass::COUNT], 0);
    // One second, in microseconds: 100,000 packets with TTL 1, 50,000 ARP and 50,000 pings; 1,000 of BFD and of BGP.
    for now in (0..1_000_000u64).step_by(10) {
        push(&mut path, DC, &expired, now * 1_000);
        push(
            &mut path,
            DC,
            if now % 20 == 0 { &arp } else { &ping },
            now * 1_000,
        );
        if now % 1_000 == 0 {
            push(&mut path, DC, &bfd, now * 1_000);
            push(&mut path, DC, &bgp, now * 1_000);
        }
        if now % 5_000 == 0 {
            for (class, _, _) in given(&mut host) {
                came[class.index()] += 1;
            }
            reported += pull(&mut path, DC, now * 1_000).len();
        }
    }
    for (class, _, _) in given(&mut host) {
        came[class.index()] += 1;
    }
    assert_eq!(came[PuntClass::Bfd.index()], 1_000);
    assert_eq!(came[PuntClass::Routing.index()], 1_000);
    for class in [PuntClass::ArpNd, PuntClass::ToUs] {
        let came = came[class.index()];
        assert!((990..=1_060).contains(&came), "{class:?}: {came}");
        let dropped = path.counters().port(0).unwrap().drops[class.reason().index()].get();
        assert_eq!(dropped, 50_000 - came, "{class:?}");
    }
    assert!((390..=440).contains(&reported), "{reported} errors");
    assert_whole(&path);
}

/// A reader that has stopped: frames that its queue does not hold are dropped and counted, and the pool is as it was.
#[test]
fn a_full_queue_drops_and_takes_nothing_of_the_pool() {
    let (mut path, mut host) = linux();
    let arp = ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]);
    for now in 0..10_000u64 {
        push(&mut path, DC, &arp, now * 1_000_000);
    }
    let class = &path.counters().punt.classes[PuntClass::ArpNd.index()];
    let held = class.punted.packets.get();
    assert_eq!(held, (PuntClass::ArpNd.room() / 65) as u64);
    assert_eq!(
        (class.full.get(), class.over_rate.get()),
        (10_000 - held, 0)
    );
    assert_eq!(drops(&path, DC), [("punt_arp_nd", 10_000 - held)]);
    assert_eq!(path.buffer().used().frames, 0);
    assert_whole(&path);
    assert_eq!(given(&mut host).len() as u64, held);
}

#[test]
fn an_unresolved_next_hop_is_asked_for_once() {
    let (mut path, mut host) = linux();
    for now in 0..100 {
        push(&mut path, DC, &data("10.0.3.9").frame(), now);
        push(&mut path, DC, &data("2001:db8:3::9").frame(), now);
    }
    let asks: Vec<_> = std::iter::from_fn(|| host.asks.pop().ok()).collect();
    let of = |text| crate::punt::Ask {
        port: WAN,
        vlan: 100,
        destination: v4(text),
    };
    assert_eq!(asks, [of("10.0.3.9"), of("2001:db8:3::9")]);
    assert_eq!(drops(&path, DC), [("unresolved", 200)]);
    let counters = &path.counters().punt;
    assert_eq!(
        (counters.asked.get(), counters.asked_lately.get()),
        (2, 198)
    );
    assert_whole(&path);
}

#[test]
fn what_linux_sends_leaves_by_its_port_and_vlan_ahead_of_the_data() {
    let (mut path, _host) = linux();
    for _ in 0..8 {
        push(&mut path, DC, &data("10.0.2.2").frame(), 0);
    }
    let bfd = ip(
        Mac([2, 0, 0, 0, 9, 2]),
        &packet(
            ("10.0.12.1", "10.0.12.2"),
            (17, 255),
            &[],
            &ports(49_152, 3784),
        ),
    );
    let roce = data("10.0.2.2").frame();
    let at = |vlan| Place { port: WAN, vlan };
    assert!(path.inject(at(100), true, HeapFrame::new(&bfd), Nanos(0)));
    assert!(path.inject(at(0), false, HeapFrame::new(&bfd), Nanos(0)));
    // No frame from Linux enters a lossless queue.
    assert!(path.inject(at(0), false, HeapFrame::new(&roce), Nanos(0)));
    assert_whole(&path);
    let mut out = Vec::new();
    for now in 0..100 {
        out.extend(pull(&mut path, WAN, now * 1_000));
    }
    assert_eq!(out.len(), 11);
    let first = out[0].buf.data();
    assert_eq!(
        first[12..18],
        [0x81, 0, 6 << 5, 100, 0x08, 0],
        "tag and priority"
    );
    assert_eq!((&first[..12], &first[18..]), (&bfd[..12], &bfd[14..]));
    assert!(out.iter().any(|frame| frame.buf.data() == bfd));
    let linux_data = out.iter().find(|frame| frame.buf.data() == roce).unwrap();
    assert_eq!(linux_data.meta.priority, Priority::new(0));
    let counters = &path.counters().punt;
    assert_eq!(counters.injected_control.packets.get(), 1);
    assert_eq!(counters.injected.packets.get(), 2);
    assert_whole(&path);
}

/// The pool is full of data that may not leave: BFD leaves all the same, and other frames from Linux take no room from the
/// data.
#[test]
fn linux_floods_no_queue() {
    let (mut path, _host) = with_linux(
        PoolConfig {
            bytes: 200_000,
            frames: 500,
            alpha_256: 256,
        },
        PLENTY,
    );
    let frame = ip(
        mac(9),
        &packet(("10.0.12.1", "10.0.2.2"), (1, 64), &[], &[8; 1_000]),
    );
    let at = Place { port: WAN, vlan: 0 };
    let queued = (0..1_000)
        .filter(|_| path.inject(at, false, HeapFrame::new(&frame), Nanos(0)))
        .count();
    assert!(
        (50..=70).contains(&queued),
        "{queued} of a third of the pool"
    );
    assert_eq!(
        path.counters().punt.inject_lost.get(),
        1_000 - queued as u64
    );
    assert!(path.inject(at, true, HeapFrame::new(&frame), Nanos(0)));
    path.link_down(WAN, Nanos(0));
    assert!(
        !path.inject(at, true, HeapFrame::new(&frame), Nanos(0)),
        "the link is down"
    );
    assert_whole(&path);
    path.shut_down();
    assert_whole(&path);
}

/// The pool is full of data that may not leave, and of CNPs: BFD is queued all the same, out of its own reserve, and no more
/// than that.
#[test]
fn bfd_has_room_when_nobody_else_has() {
    let pool = PoolConfig {
        bytes: 400_000,
        frames: 4_000,
        alpha_256: 256 << 8,
    };
    let (path, _host) = with_linux(pool, PLENTY);
    let mut buffer = crate::buffer::BufferConfig::plain(pool, 2);
    buffer.control.own = 10_000;
    buffer.control.linux = 20_000;
    let pause = Vec::new();
    let mut path = path.with_lossless(LosslessConfig {
        buffer,
        ports: pause,
    });
    for now in 0..400 {
        push(&mut path, DC, &data("10.0.2.2").frame(), now);
    }
    let cnp = HeapFrame::new(&[7; 74]);
    while path
        .originate(WAN, Priority::new(6), cnp.clone(), Nanos(0))
        .is_ok()
    {}
    assert!(
        path.buffer().free().bytes < 1_200,
        "{:?}",
        path.buffer().free()
    );
    let at = Place { port: WAN, vlan: 0 };
    assert!(!path.inject(at, false, HeapFrame::new(&[1; 74]), Nanos(0)));
    let bfd = HeapFrame::new(&[1; 76]);
    let queued = (0..1_000)
        .filter(|_| path.inject(at, true, bfd.clone(), Nanos(0)))
        .count();
    assert!((190..=212).contains(&queued), "{queued}");
    assert_whole(&path);
    let mut out = 0;
    for now in 0..2_000 {
        out += pull(&mut path, WAN, now * 1_000).len();
    }
    assert!(out > queued);
    let again = (0..1_000)
        .filter(|_| path.inject(at, true, bfd.clone(), Nanos(0)))
        .count();
    assert!(again > queued, "what left has given its room back");
    path.shut_down();
    assert_whole(&path);
    assert_eq!(path.buffer().used().bytes, 0);
}

/// A port's queues are full of data, twice its rate arrives, and a lossless queue is paused: BFD from Linux leaves within the
/// time of a few frames, and received BFD is given to Linux.
#[test]
fn bfd_passes_a_congested_port() {
    let (mut path, mut host) = linux();
    let pause = crate::wire::mac_control::build(mac(9), 1 << 3, [u16::MAX; 8]);
    push(&mut path, WAN, &pause, 0);
    let bfd_in = packet(
        ("10.0.12.2", "10.0.12.1"),
        (17, 255),
        &[],
        &ports(49_152, 3784),
    );
    let mut bfd_in = ip(mac(1), &bfd_in);
    bfd_in[0..6].copy_from_slice(&mac(1).0);
    let bfd_out = HeapFrame::new(&[5; 76]);
    let lossy = Craft {
        tos: 0,
        ..data("10.0.2.2")
    };
    let (lossy, lossless) = (lossy.frame(), data("10.0.2.2").frame());
    let (mut left, mut given_bfd, mut latest) = (0, 0, 0);
    // 30 ms: a frame of 1,106 wire bytes takes 885 ns of the port, two come in that time.
    for step in 0..30_000u64 {
        let now = step * 1_000;
        push(&mut path, DC, &lossy, now);
        push(&mut path, DC, &lossy, now);
        push(&mut path, DC, &lossless, now);
        if step % 300 == 0 {
            push(&mut path, WAN, &bfd_in, now);
            let at = Place { port: WAN, vlan: 0 };
            assert!(path.inject(at, true, bfd_out.clone(), Nanos(now)));
            latest = step;
        }
        for out in pull(&mut path, WAN, now) {
            if out.buf.data() == [5; 76] {
                left += 1;
                assert!(step - latest <= 5, "{} us", step - latest);
            }
        }
        if step % 1_000 == 999 {
            given_bfd += given(&mut host)
                .iter()
                .filter(|(class, _, _)| *class == PuntClass::Bfd)
                .count();
        }
    }
    assert_eq!((left, given_bfd), (100, 100));
    assert!(
        drops(&path, WAN)
            .iter()
            .any(|(reason, _)| *reason == "queue_full")
    );
    assert_whole(&path);
}

/// The worker that received a packet makes the error; the owner of the port toward the packet's sender sends it.
#[test]
fn an_error_crosses_to_the_owner_of_its_port() {
    let mut workers = workers_with_linux(2, AMPLE, PLENTY);
    let craft = Craft {
        ttl: 1,
        src: v4("10.0.2.9"),
        ..data("10.0.1.3")
    };
    push(&mut workers[0].0, DC, &craft.frame(), 0);
    let [(taker, _), (owner, _)] = &mut workers[..] else {
        panic!("two workers")
    };
    assert_eq!(owner.take_over(Nanos(1_000)), 1);
    let out = reported(owner, WAN, 10_000);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].0, out[0].1), (v4("10.0.1.1"), v4("10.0.2.9")));
    taker.publish_held();
    let sum = |of: fn(&PortCounters) -> u64| -> u64 {
        let paths = [&*taker, &*owner];
        paths
            .iter()
            .flat_map(|path| path.counters().ports())
            .map(of)
            .sum()
    };
    let all = |port: &PortCounters| port.drops.iter().map(Counter::get).sum();
    let came = sum(|port| port.rx.packets.get()) + sum(|port| port.originated.packets.get());
    assert_eq!(
        (came, sum(|port| port.tx.packets.get()), sum(all)),
        (2, 1, 1)
    );
    let held = [taker, owner].map(|path| path.counters().held.packets.get());
    assert_eq!(held[0].wrapping_add(held[1]), 0);
}

/// Addresses that Linux later adds to a port become the sources of errors, and its link-local ones become ours.
#[test]
fn linux_may_change_a_ports_addresses() {
    let (mut path, mut host) = linux();
    let to: Ipv6Addr = "fe80::1".parse().unwrap();
    let frame = ip(
        mac(0),
        &packet(("2001:db8:1::3", "fe80::1"), (58, 255), &[], &[135; 24]),
    );
    push(&mut path, DC, &frame, 0);
    assert_eq!(given(&mut host), []);
    let interface = PuntInterface {
        vlan: 0,
        v4: "10.0.1.254".parse().ok(),
        v6: None,
        link_locals: vec![to],
    };
    path.set_punt_port(
        DC,
        PuntPort {
            interfaces: vec![interface],
            macs: vec![],
        },
    );
    push(&mut path, DC, &frame, 1);
    assert_eq!(given(&mut host).len(), 1);
    push(&mut path, DC, &data("192.0.2.1").frame(), 2);
    assert_eq!(reported(&mut path, DC, 10_000)[0].0, v4("10.0.1.254"));
}

/// A port without an address of the family has the dummy address of RFC 7600, and the link-local one where the error leaves on its packet's
/// link.
#[test]
fn an_error_has_a_source_although_no_port_has_an_address() {
    let (mut path, _host) = linux();
    for port in [DC, WAN] {
        let interfaces = [0, 100].map(|vlan| PuntInterface::new(vlan, mac(port.0)));
        let interfaces = PuntPort {
            interfaces: interfaces.to_vec(),
            macs: vec![],
        };
        path.set_punt_port(port, interfaces);
    }
    push(&mut path, DC, &data("192.0.2.1").frame(), 0);
    assert_eq!(reported(&mut path, DC, 10_000)[0].0, v4("192.0.0.8"));
    push(&mut path, DC, &data("2a00::1").frame(), 20_000);
    let link_local: IpAddr = crate::punt::interface::link_local(mac(DC.0)).into();
    assert_eq!(reported(&mut path, DC, 30_000)[0].0, link_local);
    assert_whole(&path);
}

/// The MAC address of a macvlan is the switch's on its VLAN: frames to it are forwarded, and given to Linux, as those to the port's own.
#[test]
fn frames_to_a_virtual_routers_mac_address_are_forwarded_on_its_vlan_only() {
    let (mut path, mut host) = linux();
    let virtual_mac = Mac([0, 0, 0x5e, 0, 1, 0x33]);
    let to = |dst: &str, tags: Vec<u16>| {
        let mut craft = data(dst);
        (craft.dst_mac, craft.tags) = (virtual_mac, tags);
        craft.frame()
    };
    push(&mut path, DC, &to("10.0.2.2", vec![]), 0);
    assert_eq!(drops(&path, DC), [("not_for_us", 1)]);
    let interfaces = PuntPort {
        macs: vec![(0, virtual_mac)],
        ..interfaces(DC.0)
    };
    path.set_punt_port(DC, interfaces);
    push(&mut path, DC, &to("10.0.2.2", vec![]), 1);
    let out = pull(&mut path, WAN, 10_000);
    assert_eq!(out.len(), 1);
    assert_eq!(
        out[0].buf.data()[6..12],
        mac(WAN.0).0,
        "from the port's own"
    );
    push(&mut path, DC, &to("10.0.1.1", vec![]), 20_000);
    assert_eq!(given(&mut host).len(), 1);
    push(&mut path, DC, &to("10.0.2.2", vec![100]), 30_000);
    assert_eq!(drops(&path, DC), [("not_for_us", 2)]);
    assert_whole(&path);
}
