use proptest::prelude::*;

use super::*;

/// Builds an attribute, padded to four octets.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

const NESTED: u16 = 0x8000;

fn qp(local: u32, remote: u32, kind: u8, state: u8) -> Vec<u8> {
    let fields = [
        attribute(3, &1u32.to_ne_bytes()),
        attribute(RES_LQPN, &local.to_ne_bytes()),
        attribute(RES_RQPN, &remote.to_ne_bytes()),
        attribute(RES_TYPE, &[kind]),
        attribute(RES_STATE, &[state]),
        attribute(28, &4242u32.to_ne_bytes()),
    ];
    attribute(NESTED | RES_QP_ENTRY, &fields.concat())
}

fn sockaddr(address: IpAddr) -> Vec<u8> {
    let mut bytes = match address {
        IpAddr::V4(v4) => [&2u16.to_ne_bytes()[..], &[0x12, 0xb7], &v4.octets()].concat(),
        IpAddr::V6(v6) => [
            &10u16.to_ne_bytes()[..],
            &[0x12, 0xb7],
            &[0; 4],
            &v6.octets(),
        ]
        .concat(),
    };
    bytes.resize(128, 0);
    bytes
}

/// Dump of a host with a GSI queue pair, two in use, one being set up and one of datagrams.
fn dump() -> Vec<u8> {
    let entries = [
        qp(1, 0, 1, 3),
        qp(0x11, 0x18, 2, 3),
        qp(0x12, 0x19, 3, 2),
        qp(0x13, 0, 2, 1),
        qp(0x14, 0x1a, 2, 6),
        qp(0x15, 0x1b, 4, 3),
    ];
    [
        attribute(DEV_INDEX, &0u32.to_ne_bytes()),
        attribute(DEV_NAME, b"rxe0\0"),
        attribute(NESTED | RES_QP, &entries.concat()),
    ]
    .concat()
}

#[test]
fn connected_queue_pairs_in_use_are_read_and_no_others() {
    let found = queue_pairs(&dump());
    let pair = |local, remote| QueuePair { local, remote };
    assert_eq!(found, [pair(0x11, 0x18), pair(0x12, 0x19)]);
    assert_eq!(device(&dump()).unwrap().name, "rxe0");
}

#[test]
fn a_cm_id_names_both_addresses() {
    let [source, destination] = ["10.0.1.2", "10.0.2.2"].map(|text| text.parse().unwrap());
    for (source, destination, expected) in [
        (source, destination, true),
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), true),
        (source, "0.0.0.0".parse().unwrap(), false),
    ] {
        let fields = [
            attribute(RES_LQPN, &0x11u32.to_ne_bytes()),
            attribute(RES_SRC_ADDR, &sockaddr(source)),
            attribute(RES_DST_ADDR, &sockaddr(destination)),
        ];
        let entry = attribute(NESTED | RES_CM_ID_ENTRY, &fields.concat());
        let body = attribute(NESTED | RES_CM_ID, &entry);
        let found = cm_ids(&body);
        let id = CmId {
            queue_pair: 0x11,
            source,
            destination,
        };
        assert_eq!(found, if expected { vec![id] } else { vec![] });
    }
}

#[test]
fn a_request_names_the_device() {
    let bytes = request(Command::QueuePairs, Some(3), 7);
    let length = u32::from_ne_bytes(*bytes.first_chunk().unwrap());
    assert_eq!(length as usize, bytes.len());
    assert_eq!(u16::from_ne_bytes([bytes[4], bytes[5]]), (5 << 10) | 10);
    assert_eq!(
        attributes(&bytes[16..]).next(),
        Some((DEV_INDEX, &3u32.to_ne_bytes()[..]))
    );
    assert!(answers((5 << 10) | 10, Command::QueuePairs) && !answers(3, Command::QueuePairs));
}

proptest! {
    /// A dump of which bytes are changed, or which is cut, gives queue pairs in range or none, and never panics.
    #[test]
    fn damaged_dumps_are_read_as_far_as_they_go(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = dump();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        for pair in queue_pairs(&bytes) {
            prop_assert!((2..=0xff_ffff).contains(&pair.local) && (2..=0xff_ffff).contains(&pair.remote));
        }
        let _ = (cm_ids(&bytes), device(&bytes), interface(&bytes));
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = queue_pairs(&bytes);
        let _ = (cm_ids(&bytes), device(&bytes), interface(&bytes));
    }
}
