//! Tests of what floods of one port or source leave to the others: frames for Linux, and ICMP errors to senders.

use super::icmp_tests::reported;
use super::punted_rig::*;
use super::*;
use crate::egress::rng::Xorshift;
use crate::punt::{PuntClass, PuntRates};

/// Default rates of the configuration.
const RATES: PuntRates = PuntRates {
    classes: [20_000, 20_000, 500, 2_000, 5_000, 1_000, 5_000],
    asks: 1_000,
    icmp_errors: 1_000,
};
const MS: u64 = 1_000_000;

/// Returns a frame of each class, received on `port` from the `host`-th host there.
fn of_class(class: PuntClass, port: PortId, host: u16) -> Vec<u8> {
    let [high, low] = host.to_be_bytes();
    let (net, ours) = match port {
        DC => ([10, 0], "10.0.1.1"),
        _ => ([10, 1], "10.0.12.1"),
    };
    let src = format!("{}.{}.{high}.{low}", net[0], net[1]);
    let to_us = |protocol, ttl, payload: &[u8]| {
        let packet = packet((&src, ours), (protocol, ttl), &[], payload);
        ip(mac(port.0), &packet)
    };
    let by_mac = |dst, ethertype, payload: &[u8]| {
        let mut frame = ethernet(dst, &[], ethertype, payload);
        frame[8..12].copy_from_slice(&[net[0], net[1], high, low]);
        frame
    };
    match class {
        PuntClass::Bfd => to_us(17, 255, &ports(49_152, 3784)),
        PuntClass::Routing => to_us(6, 1, &ports(40_000, 179)),
        PuntClass::Lldp => by_mac(LLDP_MAC, 0x88cc, &[2; 200]),
        PuntClass::ArpNd => by_mac(ALL_HOSTS, 0x0806, &[1; 28]),
        PuntClass::Ptp => to_us(17, 64, &ports(319, 319)),
        PuntClass::Dhcp => to_us(17, 64, &ports(67, 67)),
        PuntClass::ToUs => to_us(1, 64, &[8; 64]),
    }
}

/// Frames a second of an honest neighbour: BFD three times in 300 ms, a BGP session that fills a table, LLDP, PTP, ARP, DHCP, pings.
const HONEST: [(PuntClass, u64); PuntClass::COUNT] = [
    (PuntClass::Bfd, 10),
    (PuntClass::Routing, 500),
    (PuntClass::Lldp, 1),
    (PuntClass::Ptp, 30),
    (PuntClass::ArpNd, 20),
    (PuntClass::Dhcp, 2),
    (PuntClass::ToUs, 100),
];

/// Returns, for each class, the share of the neighbour's frames that Linux is given in four seconds, while `sources` hosts
/// behind DC send 64,000 frames a second of the class `flood`, to a reader that comes round every millisecond. The neighbour
/// is the host `honest`.
fn given_of(flood: PuntClass, sources: u16, honest: (PortId, u16)) -> Vec<f64> {
    let (mut path, mut host) = with_linux(AMPLE, RATES);
    let floods: Vec<Vec<u8>> = (0..sources).map(|n| of_class(flood, DC, n)).collect();
    let own = HONEST.map(|(class, _)| of_class(class, honest.0, honest.1));
    let mut sent = [0u64; PuntClass::COUNT];
    let mut came = [0u64; PuntClass::COUNT];
    let mut next = (0..).map(|n: usize| n % floods.len());
    for turn in 0..4_000u64 {
        let now = (1_000 + turn) * MS;
        for _ in 0..2 {
            let mut burst = FrameVec::default();
            burst.extend((0..32).map(|_| HeapFrame::new(&floods[next.next().unwrap()])));
            path.ingress(DC, &mut burst, Nanos(now));
        }
        for (n, (class, rate)) in HONEST.into_iter().enumerate() {
            let due = turn * rate / 1_000 < (turn + 1) * rate / 1_000;
            if due {
                push(&mut path, honest.0, &own[n], now);
                sent[class.index()] += 1;
            }
        }
        for (class, place, frame) in given(&mut host) {
            let is_own = own.iter().any(|own| own.starts_with(&frame));
            came[class.index()] += u64::from(is_own && place.port == honest.0);
        }
    }
    assert_whole(&path);
    let shares = came
        .iter()
        .zip(sent)
        .map(|(came, sent)| *came as f64 / sent as f64);
    shares.collect()
}

/// A flood of any class on one port leaves the neighbour of another port its frames: 54,000 frames a second left it a tenth of
/// its LLDP and half of its ARP and pings.
#[test]
fn a_flood_of_any_class_leaves_the_neighbour_of_another_port_its_frames() {
    for flood in PuntClass::ALL {
        for sources in [1, 1_000] {
            let shares = given_of(flood, sources, (WAN, 3));
            let enough = shares.iter().all(|share| *share >= 0.95);
            assert!(enough, "{flood:?} from {sources}: {shares:?}");
        }
    }
}

#[test]
fn a_flood_of_one_source_leaves_the_others_of_its_port_their_frames() {
    for flood in PuntClass::ALL {
        let shares = given_of(flood, 1, (DC, 0x0103));
        let enough = shares.iter().all(|share| *share >= 0.95);
        assert!(enough, "{flood:?}: {shares:?}");
    }
}

/// Outcome of a flood of all classes at once, with packets among them whose TTL expires, from hosts behind DC that `seed` draws: the shares
/// of a neighbour on WAN of what it sends to Linux, and of its errors.
fn left_by_all_classes(seed: u32) -> (Vec<f64>, f64) {
    const PER_TURN: u32 = 256;
    let (mut path, mut host) = with_linux(AMPLE, RATES);
    let mut rng = Xorshift::new(seed.into());
    let own = HONEST.map(|(class, _)| of_class(class, WAN, 3));
    let own_host = v4("10.1.0.3");
    let expired = Craft {
        dst_mac: mac(WAN.0),
        src: own_host,
        ttl: 1,
        ..data("10.0.1.3")
    }
    .frame();
    let (mut sent, mut came) = ([0u64; PuntClass::COUNT], [0u64; PuntClass::COUNT]);
    let (mut errors, mut owed) = (0, 0);
    for turn in 0..2_000u64 {
        let now = (1_000 + turn) * MS;
        for _ in 0..PER_TURN / 32 {
            let mut burst = FrameVec::default();
            burst.extend((0..32).map(|_| {
                let from = rng.next_u32() % 512;
                let frame = match PuntClass::ALL.get(rng.next_u32() as usize % 6) {
                    Some(class) => of_class(*class, DC, from as u16),
                    None => Craft {
                        src: IpAddr::from([10, 0, 1, from as u8]),
                        ttl: 1,
                        ..data("10.0.2.2")
                    }
                    .frame(),
                };
                HeapFrame::new(&frame)
            }));
            path.ingress(DC, &mut burst, Nanos(now));
        }
        for (n, (class, rate)) in HONEST.into_iter().enumerate() {
            if turn * rate / 1_000 < (turn + 1) * rate / 1_000 {
                push(&mut path, WAN, &own[n], now);
                sent[class.index()] += 1;
            }
        }
        if turn % 33 == 0 {
            push(&mut path, WAN, &expired, now);
            owed += 1;
        }
        while !pull(&mut path, DC, now).is_empty() {}
        let signalled = reported(&mut path, WAN, now);
        errors += signalled.iter().filter(|one| one.1 == own_host).count();
        for (class, place, frame) in given(&mut host) {
            let is_own = place.port == WAN && own.iter().any(|own| own.starts_with(&frame));
            came[class.index()] += u64::from(is_own);
        }
    }
    assert_whole(&path);
    let shares = came.iter().zip(sent);
    let shares = shares.map(|(came, sent)| *came as f64 / sent as f64);
    (shares.collect(), f64::from(errors as u32) / f64::from(owed))
}

/// One host's frames to the switch ended LLDP, ARP, ping, BFD and BGP of neighbours on other ports, and its packets of TTL 1 ended their
/// traceroute and path MTU discovery.
#[test]
fn a_flood_of_all_classes_leaves_the_neighbour_of_another_port_its_frames_and_errors() {
    for seed in 1..=4 {
        let (shares, errors) = left_by_all_classes(seed);
        let enough = shares.iter().chain([&errors]).all(|share| *share >= 0.95);
        assert!(enough, "seed {seed}: {shares:?}, errors {errors}");
    }
}

/// Returns, over two seconds, the number of errors that 10.0.1.9 of DC gets about its packets `own`, and the number of these
/// packets, one every 66 ms, while 10.0.1.3 sends `per_ms` packets of `flood` in a millisecond.
fn reported_under(flood: &Craft, per_ms: usize, own: &Craft) -> (usize, usize) {
    let (mut path, _host) = with_linux(AMPLE, RATES);
    let host = v4("10.0.1.9");
    let own = Craft {
        src: host,
        ..own.clone()
    }
    .frame();
    let flood = flood.frame();
    let (mut sent, mut heard) = (0, 0);
    for turn in 0..2_000u64 {
        let now = (1_000 + turn) * MS;
        let mut burst = FrameVec::default();
        burst.extend((0..per_ms).map(|_| HeapFrame::new(&flood)));
        path.ingress(DC, &mut burst, Nanos(now));
        if turn % 66 == 0 {
            push(&mut path, DC, &own, now);
            sent += 1;
        }
        heard += reported(&mut path, DC, now)
            .iter()
            .filter(|reported| reported.1 == host)
            .count();
    }
    assert_whole(&path);
    (heard, sent)
}

/// A flood of one host leaves others their errors: 2,000 packets a second of TTL 1 from one host had path MTU discovery fail
/// for everybody, 0 of 30.
#[test]
fn no_flood_of_one_host_takes_the_icmp_errors_of_another() {
    let expired = Craft {
        ttl: 1,
        ..data("10.0.2.2")
    };
    let large = Craft {
        payload: vec![0; 1600],
        ..data("10.0.2.2")
    };
    for (flood, own) in [
        (&expired, &large),
        (&expired, &expired),
        (&large, &large),
        (&large, &expired),
    ] {
        for per_ms in [2, 20] {
            let (heard, sent) = reported_under(flood, per_ms, own);
            assert_eq!(heard, sent, "{per_ms}");
        }
    }
}

/// Errors about packets that are too big have a limit of their own, even for the same host.
#[test]
fn packets_that_are_too_big_have_a_limit_of_their_own() {
    let (mut path, _host) = with_linux(AMPLE, RATES);
    let (mut heard, mut sent) = (0, 0);
    for turn in 0..2_000u64 {
        let now = (1_000 + turn) * MS;
        let expired = Craft {
            ttl: 1,
            ..data("10.0.2.2")
        };
        push(&mut path, DC, &expired.frame(), now);
        push(&mut path, DC, &expired.frame(), now);
        if turn % 66 == 0 {
            let large = Craft {
                payload: vec![0; 1600],
                ..data("10.0.2.2")
            };
            push(&mut path, DC, &large.frame(), now);
            sent += 1;
        }
        let reported = reported(&mut path, DC, now);
        heard += reported
            .iter()
            .filter(|reported| reported.2.contains("Fragm"))
            .count();
    }
    assert_eq!(heard, sent);
    let over = path.counters().punt.icmp_over_rate.get();
    assert!((1_800..2_100).contains(&over), "{over}");
}
