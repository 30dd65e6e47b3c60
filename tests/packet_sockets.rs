//! Frames as a packet socket has them: fragments that the kernel reassembled, and frames that the ring cut.
//!
//! Needs root.

use std::fmt::Write as _;

use npcc_api::model::Port;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::checksum;

use crate::common::fifty;
use crate::common::net::{Net, python, run};
use crate::common::switch::Switch;
use crate::common::{alone, assert_success};
use npcc_testkit::wait;

/// Returns a packet from 10.0.1.3 to 10.0.2.3 with so many octets of data, in a frame to `dc0`.
fn packet(octets: usize) -> Vec<u8> {
    let craft = Craft {
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.3".parse().unwrap(),
            0x0a,
            0x11,
            octets,
        )
    };
    craft.frame()
}

/// Returns the two fragments of a packet; the first has so many octets behind the IP header, a multiple of 8.
fn fragments(whole: &[u8], first: usize) -> [Vec<u8>; 2] {
    let (headers, data) = whole.split_at(34);
    let of = |data: &[u8], flags_offset: u16| {
        let mut frame = headers.to_vec();
        let len = u16::try_from(20 + data.len()).unwrap();
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        frame[18..20].copy_from_slice(&77u16.to_be_bytes());
        frame[20..22].copy_from_slice(&flags_offset.to_be_bytes());
        frame[24..26].fill(0);
        let sum = !checksum::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend(data);
        frame
    };
    let offset = u16::try_from(first / 8).unwrap();
    [of(&data[..first], 0x2000), of(&data[first..], offset)]
}

fn send(space: &str, frames: &[Vec<u8>]) {
    let mut script = "import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('hdc', 0))
"
    .to_owned();
    for frame in frames {
        let hex: String = frame.iter().map(|octet| format!("{octet:02x}")).collect();
        writeln!(script, "s.send(bytes.fromhex('{hex}'))").unwrap();
    }
    assert_success(&python(space, &script).output().unwrap());
}

/// Earlier defect: what the driver had cut was `ip_truncated`, as if its sender had lied. That fragments come as one is no defect of ours,
/// and in docs/lab.md.
#[test]
fn what_a_packet_socket_cuts_or_reassembles_has_a_name_of_its_own() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    let lab = fifty::lab(&space);
    for end in ["hdc", "dc0"] {
        run(&format!("ip -n {space} link set {end} mtu 9000"));
    }
    lab.config(fifty::CONFIG);
    let mut switch = Switch::start(lab);
    assert_eq!(fifty::passed(&space), 50);
    let before = switch.snapshot().ports.swap_remove(0);
    let dropped = |row: &Port, reason: DropReason| {
        row.counts.drops[reason.index()] - before.counts.drops[reason.index()]
    };
    let until = |frames: u64| {
        let awaited = || {
            format!(
                "{frames} frames: {:?}",
                switch.snapshot().ports[0].counts.rx
            )
        };
        wait::value(wait::LONG, awaited, || {
            let row = switch.snapshot().ports.swap_remove(0);
            (row.counts.rx.packets == before.counts.rx.packets + frames).then_some(row)
        })
    };
    // A jumbo frame, to a ring of 2,048 octets a frame.
    send(&space, &[packet(3_000)]);
    let row = until(1);
    assert_eq!(
        (
            dropped(&row, DropReason::DriverTruncated),
            dropped(&row, DropReason::IpTruncated)
        ),
        (1, 0)
    );
    // Two fragments come as one datagram, which is longer than the MTU, or not.
    send(&space, &fragments(&packet(2_500), 1_480));
    let row = until(2);
    assert_eq!(dropped(&row, DropReason::DriverTruncated), 2);
    send(&space, &fragments(&packet(900), 400));
    let row = until(3);
    assert_eq!(dropped(&row, DropReason::DriverTruncated), 2);
    assert_eq!(row.counts.drops.iter().sum::<u64>(), 2);
    let check = switch.lab.command(&["check", "-c", "switch.yaml"]).output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    assert!(check.contains("dc0 1982"), "{check}");
    switch.stop();
}
