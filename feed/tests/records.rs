//! Records as they come over a real server have the form that `npcc-feed schema` publishes.

use std::collections::BTreeSet;

use npcc_api::ends::Lease;

use crate::common::nats::addresses;

use crate::common::published::{Claims, schemas};
use crate::common::{Edge, Nats, end, pair};
use async_nats::{ConnectOptions, Subscriber};
use futures_util::StreamExt;
use npcc_feed::agent::LeaseMessage;
use serde_json::{Value, json};

/// Subscribes as the second box's user.
async fn subscribe(server: &Nats, subject: &'static str) -> Subscriber {
    let options =
        ConnectOptions::new().user_and_password("edge-2".to_owned(), "change-me-2".to_owned());
    let client = options.connect(server.address()).await.unwrap();
    client.subscribe(subject).await.unwrap()
}

#[tokio::test]
async fn each_record_has_the_published_form() {
    let mut claims = Claims::default();
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let mut messages = subscribe(&servers[0], "npcc.dc1.*.*").await;
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..50).map(|number| end(number, 1)));
    let mut left = BTreeSet::from(["state", "hosts", "decisions", "events"]);
    let mut states = 0;
    // The state once said that every host answers: the feed looked for a key that the switch had renamed.
    let mut counts_unresponsive = false;
    while !left.is_empty() || states < 10 || !counts_unresponsive {
        // The first roll-up of hosts is due at once, and the next a minute later.
        assert!(states < 40, "{left:?} did not come");
        let message = messages.next().await.unwrap();
        let kind = message.subject.rsplit('.').next().unwrap().to_owned();
        let record: Value = serde_json::from_slice(&message.payload).unwrap();
        claims.valid(&kind, &record);
        if left.remove(kind.as_str()) {
            claims.needs_all_keys(&kind, &record);
        }
        if kind == "state" {
            states += 1;
            counts_unresponsive |= record["hosts_unresponsive"] == 1;
            // Lines before the feed's first read of the log are no records.
            pair[0].switch.logs(json!({"time_us": 1_000 + 2 * states, "kind": "decision", "src": "10.0.1.7", "dst": "10.0.2.1", "text": "cnp"}));
            pair[0].switch.logs(
                json!({"time_us": 1_001 + 2 * states, "kind": "event", "text": "port dci is down"}),
            );
        }
    }
    let gap = json!({"v": 1, "site": "dc1", "box": "edge-1", "at": 1, "gap": true});
    claims.valid("events", &gap);
    claims.needs_all_keys("events", &gap);
    claims.hold();
}

/// The times of another process of the switch begin at 0: its lines come though they are before the last one of the process that ended.
#[tokio::test]
async fn lines_of_the_log_come_after_a_restart_of_the_switch() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let mut messages = subscribe(&servers[0], "npcc.dc1.edge-1.*").await;
    let edge = Edge::start(folder.path(), 1, &addresses(&servers), "change-me-1");
    let event = |time: u64, said: &str| json!({"time_us": time, "kind": "event", "text": said});
    for said in ["before", "after"] {
        if said == "after" {
            edge.switch.logs_only(event(5, said));
        }
        let mut states = 0;
        loop {
            let message = messages.next().await.unwrap();
            let record: Value = serde_json::from_slice(&message.payload).unwrap();
            if record["line"]["text"] == said {
                break;
            }
            states += u64::from(message.subject.ends_with(".state"));
            assert!(states < 40, "no record of the line \"{said}\"");
            if said == "before" {
                // One of these lines is after the feed's first read of the log.
                edge.switch.logs(event(10_000_000 + states, said));
            }
        }
    }
}

#[test]
fn leases_have_the_published_form() {
    let mut claims = Claims::default();
    let lease = Lease {
        to: [10, 0, 1, 2].into(),
        from: None,
        queue_pair: 7,
        remote_queue_pair: 24,
        udp_port: None,
    };
    let message = LeaseMessage::new("gpu-1".parse().unwrap(), 1, vec![lease]).encode();
    let message: Value = serde_json::from_slice(&message).unwrap();
    claims.valid("leases", &message);
    claims.needs_all_keys("leases", &message);
    let lease = &message["leases"][0];
    for (key, wrong) in [
        ("host", json!("GPU 1")),
        ("expires", json!(-1)),
        ("leases", json!([{"to": "10.0.1.2"}])),
        ("leases", json!(vec![lease; 201])),
    ] {
        let mut message = message.clone();
        message[key] = wrong;
        claims.invalid("leases", message, key);
    }
    claims.hold();
}

/// The page for operators names each key.
#[test]
fn the_page_names_each_key_of_the_schema() {
    fn keys<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
        if let Some(properties) = schema["properties"].as_object() {
            found.extend(properties.keys().map(String::as_str));
        }
        let parts = schema
            .as_object()
            .into_iter()
            .flat_map(|keys| keys.values());
        for part in parts.chain(schema.as_array().into_iter().flatten()) {
            keys(part, found);
        }
    }
    let schema = schemas();
    let mut found = BTreeSet::new();
    keys(&schema, &mut found);
    assert!(found.len() > 40, "{found:?}");
    let page = include_str!("../../docs/fleet.md");
    found
        .retain(|key| !page.contains(&format!("`{key}`")) && !page.contains(&format!("`{key}[]`")));
    assert!(found.is_empty(), "docs/fleet.md does not name {found:?}");
}
