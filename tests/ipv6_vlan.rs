//! IPv6 in VLANs, pcap in and pcap out: data from a tagged DC subnet to a tagged WAN subnet, CNPs back with a tag of their
//! own. UDP source ports are the symmetric hash of both QPNs, as Linux makes them with flow label 0.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::common::{Lab, alone, scapy_cnps, tshark_cnps};
use npcc_pipeline::craft::{BthFields, Craft};
use npcc_pipeline::units::Mac;
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::capture::{self, Captured};

const SENDER: &str = "2001:db8:1::3";
const RECEIVER: &str = "2001:db8:2::2";
const DC_MAC: Mac = Mac([2, 0, 0, 0, 1, 1]);
const WAN_MAC: Mac = Mac([2, 0, 0, 0, 2, 1]);

/// Returns `frames` packets of each of four QPs: data with receiver QPNs 0x2011.., ACKs with sender QPNs 0x1018...
fn traffic(frames: u32) -> (Vec<Captured>, Vec<Captured>) {
    let (sender, receiver): (IpAddr, IpAddr) = (SENDER.parse().unwrap(), RECEIVER.parse().unwrap());
    let mut out = (Vec::new(), Vec::new());
    for psn in 0..frames {
        for qp in 0..4 {
            let (local, remote) = (0x1018 + qp, 0x2011 + qp * 3);
            let src_port = port_of(Qpn::new(local), Qpn::new(remote));
            let bth = |opcode, dest_qp| {
                Some(BthFields {
                    opcode,
                    dest_qp,
                    psn,
                    ack_req: psn % 8 == 0,
                    becn: false,
                })
            };
            let data = Craft {
                dst_mac: DC_MAC,
                src_mac: Mac([2, 0, 0, 0, 1, 3]),
                tags: vec![100],
                src_port,
                bth: bth(0x07, remote),
                ..Craft::roce(sender, receiver, 0, 0, 1024)
            };
            out.0.push(Captured {
                time: u64::from(psn) * 1_000,
                frame: data.frame(),
            });
            let ack = Craft {
                dst_mac: WAN_MAC,
                src_mac: Mac([2, 0, 0, 0, 2, 2]),
                tags: vec![200],
                src_port,
                bth: bth(0x11, local),
                ..Craft::roce(receiver, sender, 0, 0, 4)
            };
            out.1.push(Captured {
                time: u64::from(psn) * 1_000,
                frame: ack.frame(),
            });
        }
    }
    out
}

#[test]
fn cnps_go_back_through_the_senders_vlan() {
    let _alone = alone();
    let lab = Lab::new();
    let (data, acks) = traffic(1500);
    capture::write(&lab.path("dc-in.pcap"), data.iter(), 1).unwrap();
    capture::write(&lab.path("wan-in.pcap"), acks.iter(), 1).unwrap();
    lab.config(
        "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=dc-in.pcap,tx_pcap=dc-out.pcap\", mac: \"02:00:00:00:01:01\", mtu: 1500,
      vlans: [ { id: 100, addresses: [\"2001:db8:1::1/64\"] } ] }
  - { name: wan0, device: \"net_pcap1,rx_pcap=wan-in.pcap,tx_pcap=wan-out.pcap\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 10M,
      vlans: [ { id: 200, addresses: [\"2001:db8:12::1/64\"] } ], npcc: { enable: true, queues: [3] } }
routes: [ { prefix: \"2001:db8:2::/64\", via: \"2001:db8:12::2\" } ]
neighbors:
  - { address: \"2001:db8:1::3\", port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: \"2001:db8:12::2\", port: wan0, mac: \"02:00:00:00:02:02\" }
qos: { profile: roce-semi-lossless }
buffer: { pool: 32MB }
npcc: { shallow: 20KB, deep: 100KB, gate: off, cnp: { earned: 0B } }
",
    );
    let snapshot = lab.run_until("four are signalled, and data leave", |switch| {
        switch.signalled() == 4 && switch.snapshot().ports[1].tx.packets > 500
    });
    assert_eq!(
        snapshot.npcc.paired.named("port-hash"),
        Some(&4),
        "{:?}",
        snapshot.npcc
    );

    let cnps = scapy_cnps(&lab.path("dc-out.pcap"));
    for cnp in &cnps {
        cnp.assert_well_formed();
        assert_eq!((cnp.src.as_str(), cnp.dst.as_str()), (RECEIVER, SENDER));
        assert_eq!((cnp.vlan, cnp.pcp), (Some(100), Some(6)));
        assert_eq!(
            (cnp.eth_src.as_str(), cnp.eth_dst.as_str()),
            ("02:00:00:00:01:01", "02:00:00:00:01:03")
        );
    }
    let signalled: BTreeSet<u32> = cnps.iter().map(|cnp| cnp.dqpn).collect();
    assert_eq!(signalled, (0x1018..0x101c).collect());
    assert_eq!(tshark_cnps(&lab.path("dc-out.pcap")).len(), cnps.len());

    // Data leave in the WAN's VLAN, with the priority of their queue.
    let out = capture::read(&lab.path("wan-out.pcap")).unwrap();
    assert!(out.len() > 500, "{}", out.len());
    assert!(
        out.iter()
            .all(|captured| captured.frame[12..16] == [0x81, 0, 3 << 5, 200])
    );
}

/// Guards the oracle itself: a CNP with one bit of its ICRC flipped is found out.
#[test]
fn scapy_finds_a_wrong_icrc() {
    let lab = Lab::new();
    let mut cnp = npcc_roce::build::CnpSpec {
        flow: npcc_roce::key::FlowKey::new(
            SENDER.parse().unwrap(),
            RECEIVER.parse().unwrap(),
            Qpn::new(0x2011),
        ),
        sender_qpn: Qpn::new(0x1018),
        dst_mac: DC_MAC,
        src_mac: WAN_MAC,
        vlan: None,
        ip_id: 0,
        header: npcc_roce::build::CnpHeader::default(),
    }
    .build()
    .bytes()
    .to_vec();
    let good = Captured {
        time: 0,
        frame: cnp.clone(),
    };
    *cnp.last_mut().unwrap() ^= 1;
    let bad = Captured {
        time: 0,
        frame: cnp,
    };
    capture::write(&lab.path("two.pcap"), [good, bad].iter(), 1).unwrap();
    let read = scapy_cnps(&lab.path("two.pcap"));
    assert_eq!(
        read.iter().map(|cnp| cnp.icrc_ok).collect::<Vec<_>>(),
        [true, false]
    );
}
