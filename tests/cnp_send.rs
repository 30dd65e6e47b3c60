//! `npcc-switch cnp send`: CNPs that an operator orders leave as NPCC's own do, are counted apart, and nothing else of NPCC changes.

use std::collections::BTreeMap;

use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;

use crate::common::switch::Switch;
use crate::common::{Lab, alone, scapy_cnps, tshark_cnps};
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::http;
use serde_json::Value;

/// Switch that sends no CNP by itself, with a budget of CNPs that an order of 40 exceeds.
const CONFIG: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,tx_pcap=dc-out.pcap\", mac: \"02:00:00:00:01:01\", mtu: 1500,
      addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"], vlans: [ { id: 100, addresses: [10.0.100.1/24] } ] }
  - { name: wan0, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 10G, addresses: [10.0.12.1/24],
      npcc: { queues: [3] } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" }
  - { address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: 10.0.100.3, port: dc0, mac: \"02:00:00:00:01:64\" }
  - { address: \"2001:db8:1::3\", port: dc0, mac: \"02:00:00:00:01:06\" }
qos: { profile: lossy }
buffer: { pool: 4MB }
npcc: { action: off, tick: 2ms, recovery: 3ms, cnp: { per_second: 1 }, hosts: { deny: [10.0.1.3/32] } }
";

fn start() -> Switch {
    let lab = Lab::new();
    let frame = Craft {
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            0x0a,
            0x11,
            1024,
        )
    };
    let frames = [Captured {
        time: 0,
        frame: frame.frame(),
    }];
    capture::write(&lab.path("in.pcap"), frames.iter(), 1).unwrap();
    lab.config(CONFIG);
    Switch::start(lab)
}

/// Returns the words of an order.
fn order<'a>(to: &'a str, from: &'a str, qp: &'a str, count: &'a str) -> Vec<&'a str> {
    vec![
        "cnp", "send", "--to", to, "--from", from, "--qp", qp, "--count", count,
    ]
}

impl Switch {
    /// Orders CNPs that must be refused; returns the exit code and the error.
    fn no_cnp(&self, to: &str, from: &str, qp: &str, count: &str) -> (i32, String) {
        let output = self.ask(&order(to, from, qp, count));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), text)
    }

    /// Returns the changes of the audit log: request, outcome, author.
    fn changes(&self) -> Vec<(String, String, Value)> {
        let all = self.show("audit");
        let changes = all["changes"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        changes
            .map(|change| {
                (
                    text(&change["what"]),
                    text(&change["outcome"]),
                    change["author"].clone(),
                )
            })
            .collect()
    }
}

#[test]
fn ordered_cnps_leave_are_logged_and_touch_no_other_count() {
    let _alone = alone();
    let mut switch = start();
    switch.until("the frame was forwarded", || switch.has_passed(&[1]));
    let before = switch.show("npcc");
    // More than the budget holds, to a host that is denied, while the action is off.
    switch.done(&order("10.0.1.3", "10.0.2.2", "0x18", "40"));
    switch.done(&[
        "cnp",
        "send",
        "--to",
        "2001:db8:1::3",
        "--from",
        "2001:db8:2::2",
        "--qp",
        "16777215",
    ]);
    switch.done(&order("10.0.100.3", "10.0.2.2", "2", "2"));
    let ports = || switch.show("ports")[0]["roce"]["cnp_out"].as_u64();
    switch.until("all have left", || ports() == Some(43));
    let after = switch.show("npcc");
    for key in ["cnps_sent", "would_send", "cnps_suppressed"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!(
        (&before["cnps_ordered"], &after["cnps_ordered"]),
        (&0.into(), &43.into())
    );
    assert!(switch.done(&["show", "npcc"]).contains("ordered"));
    let flows = switch.show("flows");
    let mut flows = flows.as_array().unwrap().iter();
    assert!(flows.all(|flow| flow["cnps"] == 0));

    let changes = switch.changes();
    assert_eq!(changes.len(), 3, "{changes:?}");
    let (what, outcome, author) = &changes[0];
    assert_eq!(
        (what.as_str(), outcome.as_str()),
        (
            "cnp send --to 10.0.1.3 --from 10.0.2.2 --qp 0x18 --count 40",
            "done"
        )
    );
    assert!(author["uid"].is_u64() && author["pid"].as_u64() > Some(1));
    switch.stop();

    let file = switch.path("dc-out.pcap");
    let mut found = BTreeMap::new();
    for cnp in scapy_cnps(&file) {
        cnp.assert_well_formed();
        assert_eq!(cnp.eth_src, "02:00:00:00:01:01");
        let key = (cnp.src, cnp.dst, cnp.dqpn, cnp.vlan, cnp.eth_dst);
        *found.entry(key).or_insert(0) += 1;
    }
    let key = |src: &str, dst: &str, qpn, vlan, mac: &str| {
        (src.to_owned(), dst.to_owned(), qpn, vlan, mac.to_owned())
    };
    let wanted = BTreeMap::from([
        (
            key("10.0.2.2", "10.0.1.3", 0x18, None, "02:00:00:00:01:03"),
            40,
        ),
        (
            key(
                "2001:db8:2::2",
                "2001:db8:1::3",
                0x00ff_ffff,
                None,
                "02:00:00:00:01:06",
            ),
            1,
        ),
        (
            key("10.0.2.2", "10.0.100.3", 2, Some(100), "02:00:00:00:01:64"),
            2,
        ),
    ]);
    assert_eq!(found, wanted);
    assert_eq!(tshark_cnps(&file).len(), 43);
}

#[test]
fn an_order_without_a_way_or_with_an_impossible_field_is_refused_and_logged() {
    let _alone = alone();
    let mut switch = start();
    for (to, from, qp, why) in [
        ("10.9.9.9", "10.0.2.2", "17", "no route to the sender"),
        ("10.0.1.4", "10.0.2.2", "17", "is not resolved"),
        ("10.0.1.1", "10.0.2.2", "17", "leads to no neighbor"),
        ("10.0.1.3", "2001:db8:2::2", "17", "two IPv4 or two IPv6"),
        ("224.0.0.9", "10.0.2.2", "17", "not the address of one host"),
        ("10.0.1.3", "10.0.2.2", "16777216", "no queue pair"),
        ("10.0.1.3", "10.0.2.2", "1", "no queue pair"),
    ] {
        let (code, said) = switch.no_cnp(to, from, qp, "3");
        assert!(code == 1 && said.contains(why), "{to} {qp}: {said}");
        let (what, outcome, _) = switch.changes().pop().unwrap();
        assert!(
            what.starts_with("cnp send") && outcome.contains(why),
            "{outcome}"
        );
    }
    let logged = switch.changes().len();
    for count in ["0", "1001"] {
        let (code, said) = switch.no_cnp("10.0.1.3", "10.0.2.2", "17", count);
        assert!(code == 2 && said.contains("1..=1000"), "{said}");
    }
    // A client of its own making is refused by the switch.
    let order = "{\"to\":\"10.0.1.3\",\"from\":\"10.0.2.2\",\"queue_pair\":17,\"count\":1001}";
    let socket = switch.path("switch.sock");
    let (status, reply) = http::ask(&socket, "POST", "/v1/cnps", order).unwrap();
    assert!(
        status == 400 && reply.contains("write 1 to 1000"),
        "{reply}"
    );
    assert_eq!(switch.changes().len(), logged + 1);
    let port = &switch.show("ports")[0];
    assert_eq!(
        (
            &switch.show("npcc")["cnps_ordered"],
            &port["roce"]["cnp_out"]
        ),
        (&0.into(), &0.into())
    );
    switch.stop();
}
