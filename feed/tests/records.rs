//! Records as they come over a real server have the form that `npcc-feed schema` publishes.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_nats::ConnectOptions;
use common::nats::addresses;
use common::{Nats, end, feed, pair, text};
use futures_util::StreamExt;
use jsonschema::Validator;
use npcc_feed::agent::{Lease, LeaseMessage};
use serde_json::{Value, json};

/// Validators of the published schema, by the last part of the subject.
fn published() -> BTreeMap<String, Validator> {
    let out = feed(&["schema"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let schema: BTreeMap<String, Value> = serde_json::from_slice(&out.stdout).unwrap();
    let validator =
        |(kind, schema): (String, Value)| (kind, jsonschema::validator_for(&schema).unwrap());
    schema.into_iter().map(validator).collect()
}

#[track_caller]
fn assert_valid(validator: &Validator, record: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(record)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?} in {record:#}");
}

#[tokio::test]
async fn each_record_has_the_published_form() {
    let published = published();
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let options =
        ConnectOptions::new().user_and_password("edge-2".to_owned(), "change-me-2".to_owned());
    let client = options.connect(servers[0].address()).await.unwrap();
    let mut messages = client.subscribe("npcc.dc1.*.*").await.unwrap();
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..50).map(|number| end(number, 1)));
    let mut left = BTreeSet::from(["state", "hosts", "decisions", "events"]);
    let mut states = 0;
    let all = async {
        while !left.is_empty() || states < 10 {
            let message = messages.next().await.unwrap();
            let kind = message.subject.rsplit('.').next().unwrap().to_owned();
            let record: Value = serde_json::from_slice(&message.payload).unwrap();
            assert_valid(&published[&kind], &record);
            left.remove(kind.as_str());
            if kind == "state" {
                states += 1;
                // Lines before the feed's first look are no records.
                pair[0].switch.logs(json!({"time_us": 1_000 + 2 * states, "kind": "decision", "src": "10.0.1.7", "dst": "10.0.2.1", "text": "cnp"}));
                pair[0].switch.logs(json!({"time_us": 1_001 + 2 * states, "kind": "event", "text": "port dci is down"}));
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), all).await;
    assert!(in_time.is_ok(), "{left:?} did not come");
}

#[test]
fn the_schema_tells_records_from_what_is_none() {
    let published = published();
    let lease = Lease {
        to: [10, 0, 1, 2].into(),
        from: None,
        queue_pair: 7,
        remote_queue_pair: 24,
    };
    let message = LeaseMessage::new("gpu-1".parse().unwrap(), 1, vec![lease]).encode();
    let message: Value = serde_json::from_slice(&message).unwrap();
    assert_valid(&published["leases"], &message);
    for (key, wrong) in [
        ("host", json!("GPU 1")),
        ("expires", json!(-1)),
        ("leases", json!([{"to": "10.0.1.2"}])),
    ] {
        let mut message = message.clone();
        message[key] = wrong;
        assert!(!published["leases"].is_valid(&message), "{message}");
    }
    let record = json!({"v": 1, "site": "dc1", "box": "edge-1", "at": 1});
    for (kind, validator) in published.iter().filter(|(kind, _)| *kind != "leases") {
        assert!(!validator.is_valid(&record), "{kind} without content");
    }
}
