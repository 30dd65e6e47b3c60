//! PFC on devices: which ones pause, and pause state by the command line. The octets of PFC frames are looked at in `tests/pfc_live.rs`;
//! XOFF, refresh and XON are laws of `switch/tests/world_pauses.rs`.

use crate::common::switch::Switch;
use crate::common::{Lab, alone, root};
use npcc_testkit::capture;

const SENDER: (&str, &str) = ("10.0.1.3", "02:00:00:00:01:03");
const RECEIVER: (&str, &str) = ("10.0.1.2", "02:00:00:00:01:02");

fn lab(pfc: &str) -> Lab {
    let lab = Lab::new();
    let source = root().join("tests/captures/softroce-write-4qp.pcap");
    let mac = capture::mac(SENDER.1).unwrap();
    let (dc, wan) = (lab.path("dc-in.pcap"), lab.path("wan-in.pcap"));
    capture::split(&source, mac, 1, &dc, &wan).unwrap();
    let ((sender, sender_mac), (receiver, receiver_mac)) = (SENDER, RECEIVER);
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap=dc-in.pcap,tx_pcap=dc-out.pcap\", mac: \"{receiver_mac}\", mtu: 1500, speed: 10G, {pfc} }}
  - {{ name: wan0, device: \"net_pcap1,rx_pcap=wan-in.pcap,tx_pcap=wan-out.pcap\", mac: \"{sender_mac}\", mtu: 1500, speed: 50M, pfc: off }}
routes:
  - {{ prefix: {sender}/32, via: {sender} }}
  - {{ prefix: {receiver}/32, via: {receiver} }}
neighbors:
  - {{ address: {sender}, port: dc0, mac: \"{sender_mac}\" }}
  - {{ address: {receiver}, port: wan0, mac: \"{receiver_mac}\" }}
qos: {{ dscp_to_priority: {{ 0: 3 }}, priorities: {{ 3: {{ ecn: {{ kmin: 20KB, kmax: 100KB }} }} }} }}
buffer: {{ pool: 1MB }}
"
    ));
    lab
}

/// Guards `pfc: auto`: a capture has no peer, so no pause is sent, and the switch says why.
#[test]
fn a_capture_device_is_not_paused_unless_configured() {
    let _alone = alone();
    let lab = lab("pfc: auto");
    let frames = capture::read(&lab.path("dc-in.pcap")).unwrap().len();
    let snapshot = lab.run_until("all have passed", |switch| switch.has_passed(&[frames]));
    let sent = capture::read(&lab.path("dc-out.pcap")).unwrap();
    assert!(sent.iter().all(|sent| sent.frame[12..14] != [0x88, 0x08]));
    let flow = &snapshot.ports[0].flow;
    assert_eq!(flow.backend, "none");
    assert!(flow.why.contains("no peer"), "{}", flow.why);
}

/// Guards `backend: hardware` on a device that cannot honour pause by itself: a start error with the driver's words and what to do.
#[test]
fn hardware_on_a_device_that_cannot_is_an_error() {
    let _alone = alone();
    let lab = Lab::with(
        "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: quiet, device: net_null0, mtu: 1500, pfc: off }
  - { name: dc0, device: net_null1, mtu: 1500, pfc: send }
pfc: { backend: hardware }
qos: { priorities: { 3: { ecn: off } } }
buffer: { pool: 1MB }
",
    );
    let output = lab
        .command(&["run", "-c", "switch.yaml", "--for", "1s"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("port dc0: pfc.backend is hardware")
            && said.contains("not supported")
            && said.contains("write backend: auto or software"),
        "{said}"
    );
}

/// Guards `show`, `clear` and `set` of pause state on a running switch.
#[test]
fn pause_state_is_shown_and_changed_at_run_time() {
    let _alone = alone();
    let mut switch = Switch::start(lab("pfc: send"));
    let text = |args: &[&str]| switch.done(args);
    let qos = text(&["show", "qos"]);
    assert!(
        qos.contains("roce-lossless") && qos.contains("lossless"),
        "{qos}"
    );
    let pfc = text(&["show", "pfc"]);
    assert!(pfc.contains("dc0: software, because the port's pfc requires it"));
    assert!(
        pfc.contains("longest turn of a worker's loop") && pfc.contains("LONGEST  "),
        "{pfc}"
    );
    assert!(text(&["show", "buffer"]).contains("LOSSLESS LOST"));
    let _ =
        serde_json::from_str::<serde_json::Value>(&text(&["show", "buffer", "--json"])).unwrap();
    text(&["clear", "watermarks"]);
    text(&["clear", "counters", "--port", "dc0"]);
    for (what, port, code) in [("counters", "dc9", 1), ("watermarks", "dc0", 2)] {
        let refused = switch.ask(&["clear", what, "--port", port]);
        assert_eq!(
            refused.status.code(),
            Some(code),
            "clear {what} --port {port}"
        );
    }
    text(&["set", "qos.priorities.3.weight", "20"]);
    let qos: serde_json::Value = serde_json::from_str(&text(&["show", "qos", "--json"])).unwrap();
    assert_eq!(qos["priorities"][3]["weight"], 20);
    text(&["set", "qos.priorities.3.ecn.kmax", "90KB"]);
    let qos: serde_json::Value = serde_json::from_str(&text(&["show", "qos", "--json"])).unwrap();
    let queue = &qos["priorities"][3];
    assert_eq!(queue["ecn"]["wan0"][1], 90_000);
    assert_eq!(queue["weight"], 20, "what was set before stays");
    let refused = switch.ask(&["set", "qos.priorities.3.ecn.kmax", "10KB"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("kmin") && why.contains("kmax"), "{why}");
    assert_eq!(
        switch
            .ask(&["set", "qos.priorities.3.weight", "0"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        switch
            .ask(&["set", "qos.priorities.6.weight", "5"])
            .status
            .code(),
        Some(2),
        "strict"
    );
    switch.stop();
}
