//! Choice of a server, and the link to one that takes nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use crate::common::Nats;
use crate::common::nats::addresses;
use npcc_feed::bus::{BusCounts, Link, Published, connect};
use npcc_feed::settings::{Bus, Settings};
use npcc_testkit::wait::LONG;

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

/// Returns a link to such a server, and its counters.
async fn stuck_link() -> (Link, Arc<BusCounts>) {
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
    tokio::time::timeout(LONG, link.reconnected())
        .await
        .unwrap();
    (link, counts)
}

#[tokio::test]
async fn a_message_that_the_server_would_not_take_is_refused_and_holds_up_no_other() {
    let (link, counts) = stuck_link().await;
    let subject = "npcc.dc1.edge-1.ends.delta";
    assert_eq!(
        link.publish(subject, &[0; 70_000]).await,
        Published::Refused
    );
    assert_eq!(link.publish(subject, &[0; 60_000]).await, Published::Sent);
    let counts = counts.values();
    assert_eq!((counts.refused, counts.published, counts.full), (1, 1, 0));
}

#[tokio::test]
async fn with_a_full_queue_a_message_waits_and_a_record_is_dropped() {
    let (link, counts) = stuck_link().await;
    let message = vec![0; 60_000];
    let mut sent = 0;
    while link.publish("npcc.dc1.edge-1.ends.delta", &message).await == Published::Sent {
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

#[tokio::test]
async fn the_first_server_is_the_one_that_is_connected() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    for (order, first) in [([0, 1], "nats-1"), ([1, 0], "nats-2")] {
        let servers = order.map(|at| addresses(&servers)[at].clone());
        let none = folder.path().join("none.sock");
        let path = crate::common::settings(folder.path(), 1, &servers, "change-me-1", &none);
        let settings = Settings::load(&path).unwrap().model;
        // A server that takes a second to answer is passed over.
        let mut count = 0;
        for _ in 0..8 {
            let client = connect(&settings.bus, &settings.prefix()).await.unwrap();
            count += u32::from(client.server_info().server_name == first);
        }
        assert!(count >= 7, "{first}: {count} of 8");
    }
}
