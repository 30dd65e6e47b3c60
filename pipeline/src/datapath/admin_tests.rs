//! Tests of ports that are administratively down.

use super::punted_rig::*;
use super::*;

/// Returns one frame of each kind: routed data, a CNP, a pause of all priorities, ARP and a ping for Linux, a frame to another MAC address.
fn every_kind() -> Vec<Vec<u8>> {
    let mut pause = vec![0; 60];
    pause[..14].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08]);
    pause[14..20].copy_from_slice(&[0x01, 0x01, 0, 0xff, 0xff, 0xff]);
    let cnp = Craft {
        dst_mac: mac(0),
        ..Craft::roce(v4("10.0.1.3"), v4("10.0.2.2"), 0x81, 0x11, 16)
    };
    vec![
        data("10.0.2.2").frame(),
        cnp.frame(),
        pause,
        ethernet(ALL_HOSTS, &[], 0x0806, &[1; 28]),
        ip(
            mac(0),
            &packet(("10.0.1.3", "10.0.1.1"), (1, 64), &[], &[8; 64]),
        ),
        ethernet(mac(9), &[], 0x0800, &[0; 46]),
    ]
}

/// Earlier defect: a port that was taken down forwarded what arrived on it, if its device went on receiving.
#[test]
fn a_port_that_is_down_receives_nothing_and_counts_all() {
    // The second worker receives from a port that it does not own.
    for (path, host) in &mut workers_with_linux(2, AMPLE, PLENTY) {
        path.set_admin(DC, false);
        let frames = every_kind();
        let bytes: usize = frames.iter().map(Vec::len).sum();
        for frame in &frames {
            push(path, DC, frame, 1_000);
        }
        let counters = Arc::clone(path.counters());
        let port = counters.port(0).unwrap();
        let count = frames.len() as u64;
        assert_eq!(drops(path, DC), [("link_down", count)]);
        assert_eq!(port.drop_bytes.get(), bytes as u64);
        assert_eq!(port.rx.packets.get(), count);
        assert_eq!(
            (port.consumed.packets.get(), port.punted.packets.get()),
            (0, 0)
        );
        assert_eq!((port.flow.paused.get(), port.pfc.rx[0].get()), (0, 0));
        assert_eq!(port.roce.cnp.get(), 0);
        assert!(given(host).is_empty());
        assert!(pull(path, WAN, 2_000).is_empty());
        assert_eq!(path.frames_queued(WAN), 0);

        path.set_admin(DC, true);
        push(path, DC, &data("10.0.2.2").frame(), 3_000);
        assert_eq!(drops(path, DC), [("link_down", count)]);
        assert_eq!(port.rx.packets.get(), count + 1);
    }
}

#[test]
fn with_one_worker_the_account_closes_and_the_port_forwards_once_it_is_up() {
    let (mut path, mut host) = linux();
    path.set_admin(DC, false);
    for frame in every_kind() {
        push(&mut path, DC, &frame, 1_000);
    }
    assert!(pull(&mut path, WAN, 1_000).is_empty());
    assert_whole(&path);
    path.set_admin(DC, true);
    push(&mut path, DC, &data("10.0.2.2").frame(), 2_000);
    assert_eq!(pull(&mut path, WAN, 2_000).len(), 1);
    assert!(given(&mut host).is_empty());
    assert_whole(&path);
}
