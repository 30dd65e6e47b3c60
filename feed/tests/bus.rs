//! Link to a server that takes nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use npcc_feed::bus::{BusCounts, Link};
use npcc_feed::settings::Bus;

/// Starts a server that greets a client, answers its first ping, and reads no further. Returns its address.
fn stuck_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("nats://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let info = r#"INFO {"server_id":"1","version":"2.9.10","proto":1,"host":"127.0.0.1","port":1,"headers":true,"max_payload":65536}"#;
        write!(client, "{info}\r\n").unwrap();
        let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "PING"));
        write!(client, "PONG\r\n").unwrap();
        std::thread::park();
    });
    address
}

#[tokio::test]
async fn with_a_full_queue_a_message_waits_and_a_record_is_dropped() {
    let bus = Bus {
        servers: vec![stuck_server()],
        user: None,
        password_file: None,
        nkey_file: None,
        credentials_file: None,
        tls: None,
    };
    let counts = Arc::new(BusCounts::default());
    let link = Link::open(&bus, "npcc.dc1.edge-1", &counts).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), link.reconnected())
        .await
        .unwrap();
    let message = vec![0; 60_000];
    let mut sent = 0;
    while link.publish("npcc.dc1.edge-1.ends.delta", &message).await {
        sent += 1;
        assert!(sent < 10_000, "600 MB wait");
        // The connection takes what it can.
        tokio::task::yield_now().await;
    }
    let before = counts.values();
    assert_eq!((before.published, before.full), (sent, 1));
    assert!(sent > 0 && link.is_up(), "{before:?}");
    link.publish_record("npcc.dc1.edge-1.state", &message).await;
    assert_eq!(counts.values().records_dropped, 1);
}
