//! Messages that are truncated, changed at random, or loop in themselves do no harm: no panic, no endless loop, no wrong event.

use npcc_linux::table::model::Model;
use npcc_linux::wire::event::event;
use npcc_linux::wire::message::messages;
use npcc_linux::wire::nexthop;
use npcc_linux::wire::request::{
    Dump, LinkSettings, Resolve, add_address, add_route, dump, forget, resolve, set_link,
};
use npcc_linux::wire::route::Hop;
use npcc_pipeline::units::Mac;
use proptest::prelude::*;

/// Returns one message of each kind, as the kernel would write it: requests have the form of the objects they request.
fn valid() -> Vec<Vec<u8>> {
    let hop = |link, gateway: &str, weight| Hop {
        link,
        gateway: gateway.parse().ok(),
        weight,
    };
    let settings = LinkSettings {
        up: Some(true),
        carrier: Some(true),
        mac: Some(Mac([2, 0, 0, 0, 0, 1])),
        mtu: Some(9000),
        alias: Some("port"),
        no_address_of_its_own: true,
    };
    let two = [hop(2, "10.0.0.2", 1), hop(3, "fe80::1", 4)];
    let gateway: std::net::Ipv6Addr = "fe80::2".parse().unwrap();
    // A weight is less one, its upper part in an octet of its own.
    let group: Vec<u8> = [(1u32, [0, 0]), (2, [43, 1])]
        .iter()
        .flat_map(|(id, weight)| [&id.to_ne_bytes()[..], &weight[..], &[0; 2]].concat())
        .collect();
    let next_hops = [
        next_hop(
            nexthop::NEW,
            1,
            &[
                (nexthop::OIF, &2u32.to_ne_bytes()),
                (nexthop::GATEWAY, &gateway.octets()),
            ],
        ),
        next_hop(nexthop::NEW, 9, &[(nexthop::GROUP, &group)]),
        next_hop(nexthop::NEW, 3, &[(nexthop::BLACKHOLE, &[])]),
        next_hop(nexthop::GONE, 1, &[]),
    ];
    let requests = [
        set_link(7, &settings),
        add_address(2, "10.0.0.1/24".parse().unwrap()),
        add_address(2, "2001:db8::1/64".parse().unwrap()),
        resolve(2, "10.0.0.2".parse().unwrap(), Resolve::AndKeep),
        forget(2, "fe80::2".parse().unwrap()),
        add_route("10.1.0.0/16".parse().unwrap(), &two, 20),
        add_route("::/0".parse().unwrap(), &two[1..], 1024),
        add_route("10.2.0.0/16".parse().unwrap(), &[], 0),
        dump(Dump::Routes {
            v6: true,
            table: 254,
        }),
    ];
    requests
        .into_iter()
        .map(|request| request.numbered(7))
        .chain(next_hops)
        .collect()
}

/// Builds a message about a next-hop object, as the kernel writes it.
fn next_hop(kind: u16, id: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 16 + nexthop::FIXED];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    let id = id.to_ne_bytes();
    for (kind, value) in [(nexthop::ID, &id[..])].iter().chain(attributes) {
        bytes.extend((value.len() as u16 + 4).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
    }
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes
}

#[test]
fn what_is_asked_for_is_read_as_it_was_asked() {
    let read: Vec<String> = valid()
        .iter()
        .flat_map(|bytes| {
            messages(bytes)
                .map(|m| format!("{:?}", event(&m)))
                .collect::<Vec<_>>()
        })
        .collect();
    let has = |text: &str| {
        assert!(
            read.iter().any(|line| line.contains(text)),
            "{text}: {read:#?}"
        )
    };
    has("NextHop { id: 9, kind: Group([(1, 1), (2, 300)]) }");
    has("NextHop { id: 1, kind: By { link: 2, gateway: Some(fe80::2) } }");
    has("Address { link: 2, address: 10.0.0.1, len: 24 }");
    has("managed: true");
    has(
        "Hop { link: 2, gateway: Some(10.0.0.2), weight: 1 }, Hop { link: 3, gateway: Some(fe80::1), weight: 4 }",
    );
    has("prefix: 10.1.0.0/16, metric: 20, action: Forward");
    has(
        "prefix: ::/0, metric: 1024, action: Forward, way: Hops([Hop { link: 3, gateway: Some(fe80::1), weight: 1 }])",
    );
    has("prefix: 10.2.0.0/16, metric: 0, action: Drop, way: Hops([])");
    has("Err(Malformed)");
}

#[derive(Debug, Clone)]
enum Damage {
    Cut(prop::sample::Index),
    Set(prop::sample::Index, u8),
    Length(prop::sample::Index, u16),
    Repeat(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Damage::Cut),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, to)| Damage::Set(at, to)),
        (
            any::<prop::sample::Index>(),
            prop_oneof![0u16..9, any::<u16>()]
        )
            .prop_map(|(at, to)| Damage::Length(at, to)),
        (any::<prop::sample::Index>(), 1usize..40).prop_map(|(at, n)| Damage::Repeat(at, n)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Set(at, to) => {
            let at = at.index(bytes.len());
            bytes[at] = *to;
        }
        Damage::Length(at, to) => {
            let at = at.index(bytes.len()) & !3;
            for (slot, octet) in bytes.iter_mut().skip(at).zip(to.to_ne_bytes()) {
                *slot = octet;
            }
        }
        Damage::Repeat(at, n) => {
            let at = at.index(bytes.len());
            let part: Vec<u8> = bytes[at..].iter().take(*n).copied().collect();
            bytes.extend(part);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn damaged_messages_end_nothing(
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(damage(), 0..4)), 1..8),
        whole in any::<bool>(),
    ) {
        let all = valid();
        let mut datagram = vec![];
        let mut model = Model::default();
        for (pick, damages) in &picks {
            let mut bytes = pick.get(&all).clone();
            for damage in damages {
                apply(&mut bytes, damage);
            }
            if whole && bytes.len() >= 4 {
                // The header's length is right, so that the damage is reached.
                let len = (bytes.len() as u32).to_ne_bytes();
                bytes[..4].copy_from_slice(&len);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            datagram.extend(bytes);
        }
        let mut count = 0;
        for message in messages(&datagram) {
            count += 1;
            if let Ok(event) = event(&message) {
                model.apply(event);
            }
            let _ = message.errno();
        }
        prop_assert!(count <= datagram.len() / 16);
    }

    #[test]
    fn noise_ends_nothing(mut noise in prop::collection::vec(any::<u8>(), 0..400), kind in 16u16..108) {
        if noise.len() >= 20 {
            let len = (noise.len() as u32).to_ne_bytes();
            noise[..4].copy_from_slice(&len);
            noise[4..6].copy_from_slice(&kind.to_ne_bytes());
            noise[16] = [0, 2, 10, 7][usize::from(noise[16] & 3)];
        }
        for message in messages(&noise) {
            let _ = event(&message);
        }
    }
}
