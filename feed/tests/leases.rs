//! Leases of hosts' agents reach the switch of each box, under the name of the host that published them and of no other.

use std::process::Command;

use npcc_api::ends::Lease;

use crate::common::nats::addresses;
use crate::common::{Nats, pair, text, write};
use async_nats::ConnectOptions;
use npcc_feed::agent::LeaseMessage;
use npcc_testkit::wait::{LONG, until};

/// Time at which the leases end: long after this test.
const EXPIRES: u64 = 9_000_000_000_000_000;

fn message(host: &str, queue_pair: u32) -> Vec<u8> {
    let lease = Lease {
        to: [10, 0, 1, 2].into(),
        from: Some([10, 0, 2, 2].into()),
        queue_pair,
        remote_queue_pair: 0x18,
        udp_port: None,
    };
    LeaseMessage::new(host.parse().unwrap(), EXPIRES, vec![lease]).encode()
}

#[test]
fn a_host_reports_for_itself_only() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let pair = pair(folder.path(), &addresses(&servers));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = runtime.block_on(async {
        let options = ConnectOptions::new()
            .user_and_password("gpu-1".to_owned(), "change-me-gpu-1".to_owned());
        options.connect(servers[0].address()).await.unwrap()
    });
    until("the leases", LONG, || {
        runtime.block_on(async {
            for (subject, bytes) in [
                ("npcc.dc1.host.gpu-1.leases", message("gpu-1", 7)),
                ("npcc.dc1.host.gpu-1.leases", message("gpu-2", 8)),
                ("npcc.dc1.host.gpu-2.leases", message("gpu-2", 9)),
                ("npcc.dc1.edge-1.state", message("gpu-1", 10)),
            ] {
                client.publish(subject, bytes.into()).await.unwrap();
            }
            client.flush().await.unwrap();
        });
        pair.iter()
            .all(|edge| !edge.switch.leases("gpu-1").is_empty())
    });
    for edge in &pair {
        let lease = &edge.switch.leases("gpu-1")[0];
        let expected = serde_json::json!({"kind": "lease", "to": "10.0.1.2", "from": "10.0.2.2", "queue_pair": 7,
            "remote_queue_pair": 0x18, "expires": EXPIRES});
        assert_eq!(*lease, expected);
        assert!(
            edge.switch
                .leases("gpu-1")
                .iter()
                .all(|lease| lease["queue_pair"] == 7)
        );
        assert!(edge.switch.leases("gpu-2").is_empty());
    }
}

/// The agent's own settings; its poll needs a kernel with RDMA, which the guest has and this machine may not.
#[test]
fn the_agent_checks_its_settings_and_says_what_the_kernel_lacks() {
    let agent = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_npcc-agent"))
            .args(arguments)
            .output()
            .unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.yaml");
    let secret = folder.path().join("secret");
    write(&secret, "change-me");
    let shipped = include_str!("../../packaging/feed/agent.yaml");
    write(
        &path,
        &shipped.replace("/etc/npcc-switch/agent.password", secret.to_str().unwrap()),
    );
    let out = agent(&["check", "-c", path.to_str().unwrap()]);
    assert!(
        out.status.success() && out.stderr.is_empty(),
        "{}",
        text(&out.stderr)
    );
    let out = agent(&["show"]);
    let said = text(&out.stderr);
    assert!(
        out.status.success() && said.contains("a poll took")
            || said.contains("does not list RDMA resources"),
        "{said}"
    );
}
