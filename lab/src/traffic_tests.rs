use super::*;

fn traffic() -> Traffic {
    Traffic {
        qps: 4,
        operations: vec![Operation::Write, Operation::Ack],
        sizes: vec![1082],
        senders: vec!["10.0.1.3".parse().unwrap()],
        receivers: vec!["10.0.2.2".parse().unwrap()],
        src_mac: Mac([2, 0, 0, 0, 1, 3]),
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        vlan: None,
        dscp: 26,
        ecn: 2,
        seed: 1,
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let made = |seed| -> Vec<_> {
        let traffic = Traffic { seed, ..traffic() };
        traffic.frames(20).unwrap().collect()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    let sizes: Vec<usize> = made(1).iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!(sizes[..4], [1082; 4]);
    assert_eq!(sizes[4..8], [62; 4], "ACKs");
}

#[test]
fn what_cannot_be_made_is_said() {
    let write = |size| Traffic {
        sizes: vec![size],
        ..traffic()
    };
    let said = |traffic: &Traffic| traffic.check().unwrap_err().to_string();
    assert!(said(&write(62)).contains("write 74 to 9216"));
    assert!(said(&write(1083)).contains("steps of 4"));
    assert!(write(74).check().is_ok());
    let mixed = Traffic {
        receivers: vec!["2001:db8::1".parse().unwrap()],
        ..traffic()
    };
    assert!(said(&mixed).contains("different families"));
    let none = Traffic {
        qps: 0,
        ..traffic()
    };
    assert!(said(&none).contains("1 to 1048576"));
    let vlan = Traffic {
        vlan: Some(4095),
        ..traffic()
    };
    assert!(said(&vlan).contains("VLAN 4095"));
}
