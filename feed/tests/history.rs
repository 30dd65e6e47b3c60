//! History of a site: kept by a leaf node of a pair, or by three nodes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::nats::addresses;
use crate::common::{Edge, Nats, feed, has_row, pair, settings, text, write};
use async_nats::{ConnectOptions, jetstream};
use npcc_testkit::wait::{LONG, until};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Commands of the operator at these servers.
struct Operator(PathBuf);

impl Operator {
    fn new(folder: &Path, servers: &[String]) -> Operator {
        let (password, socket) = ("change-me-operator", folder.join("none.sock"));
        let folder = folder.join("operator");
        std::fs::create_dir(&folder).unwrap();
        let path = settings(&folder, 2, servers, password, &socket);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text
            .replace("box: edge-2", "box: operator")
            .replace("user: edge-2", "user: operator");
        write(&path, &text.replace("peers: [edge-1]", "peers: []"));
        Operator(path)
    }

    /// `npcc-feed history` with these options: if it succeeded, its output, and its errors.
    fn history(&self, more: &[&str]) -> (bool, String, String) {
        let out = feed(&[&["history", "-c", self.0.to_str().unwrap()], more].concat());
        (out.status.success(), text(&out.stdout), text(&out.stderr))
    }

    /// Returns true if `npcc-feed fleet` has a row that begins with these words.
    fn sees(&self, row: &str) -> bool {
        has_row(&self.0, row)
    }

    /// Returns true if the history of a host has this line.
    fn shows(&self, host: &str, line: &str) -> bool {
        self.history(&["--host", host]).1.contains(line)
    }

    /// Has a box decide about a host, five times a second, until the history shows it; decisions have times from `time` on. A read of the
    /// history takes up to ten seconds while the nodes agree on a leader, and what is published before they do is lost: so a read must not
    /// delay the next decision.
    fn keeps(&self, edge: &Edge, time: &mut u64, host: &str) {
        let line = format!("cnp to {host}");
        let is_kept = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_kept.load(Ordering::Relaxed) {
                    *time += 1;
                    decide(edge, *time, host);
                    thread::sleep(Duration::from_millis(200));
                }
            });
            let _ended = Ended(&is_kept);
            let took = until(&line, LONG, || self.shows(host, &line));
            println!("{line}: kept after {took:?}");
        });
    }

    /// Makes the stream, once the servers can.
    fn set_up(&self, copies: usize) {
        until("the stream", LONG, || {
            let (made, said, _) = self.history(&["--set-up", "7days"]);
            made && said.contains("kept for 7days") && said.contains(&format!("copies: {copies}"))
        });
    }
}

/// Ends the decisions when it goes, also if the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns true if the stream has a leader, and both other nodes hold all of it.
fn are_current(servers: &[String]) -> bool {
    let stream = async {
        let options = ConnectOptions::new();
        let options = options.user_and_password("operator".into(), "change-me-operator".into());
        let options = options.custom_inbox_prefix("npcc.dc1.operator.inbox");
        let client = options.connect(servers).await.ok()?;
        let stream = jetstream::new(client).get_stream("NPCC-dc1").await.ok()?;
        stream.cached_info().cluster.clone()
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(stream).is_some_and(|cluster| {
        let mut others = cluster.replicas.iter();
        cluster.leader.is_some()
            && cluster.replicas.len() == 2
            && others.all(|node| node.current && !node.offline)
    })
}

fn decide(edge: &Edge, time: u64, src: &str) {
    edge.switch.logs(json!({"time_us": time, "kind": "decision", "src": src, "dst": "10.0.2.1", "text": format!("cnp to {src}")}));
}

#[test]
fn a_leaf_node_keeps_the_history_of_a_pair() {
    let folder = tempfile::tempdir().unwrap();
    let (mut servers, history) = Nats::pair_with_history(folder.path());
    let operator = Operator::new(folder.path(), &[history.address()]);
    let (found, _, said) = operator.history(&[]);
    assert!(!found && said.contains("--set-up"), "{said}");
    operator.set_up(1);
    let [edge, other] = pair(folder.path(), &addresses(&servers));
    // A line before the feed's first read of the log is not history; those after it are.
    until("both states", LONG, || {
        operator.sees("dc1 edge-1 up") && operator.sees("dc1 edge-2 up")
    });
    other.feed.signal(nix::sys::signal::Signal::SIGKILL);
    decide(&edge, 1000, "10.0.1.7");
    decide(&edge, 1001, "10.0.1.8");
    edge.switch
        .logs(json!({"time_us": 1002, "kind": "event", "text": "port dci is down"}));
    let is_kept = |host: &str, line: &str| {
        until(line, LONG, || operator.shows(host, line));
    };
    is_kept("10.0.1.7", "cnp to 10.0.1.7");
    let (_, of_host, _) = operator.history(&["--host", "10.0.1.7"]);
    assert!(
        !of_host.contains("10.0.1.8") && !of_host.contains("down"),
        "{of_host}"
    );
    let (_, all, _) = operator.history(&[]);
    assert!(
        all.contains("cnp to 10.0.1.8") && all.contains("port dci is down"),
        "{all}"
    );
    let (_, of_edge, _) = operator.history(&["--host", "10.0.2.1", "--json"]);
    assert_eq!(of_edge.lines().count(), 2, "{of_edge}");
    for line in of_edge.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&record["v"], &record["site"], &record["box"]),
            (&json!(1), &json!("dc1"), &json!("edge-1"))
        );
    }
    // The first roll-up may have come before the leaf node was connected; the next one comes after a minute.
    until("a roll-up", Duration::from_secs(120), || {
        operator.shows("10.0.1.7", "edge-1 host 10.0.1.7 flows 4 paired 3 cnps 9")
    });
    let since = |time: &str| operator.history(&["--host", "10.0.1.8", "--since", time]).1;
    until("2 s without a record", LONG, || {
        since("2s").contains("no matching records")
    });
    assert!(since("1h").contains("cnp to 10.0.1.8"), "{}", since("1h"));
    // A box that publishes no longer keeps its row: by its last state in the stream, or as a peer.
    until("the rows of both", LONG, || {
        operator.sees("dc1 edge-1 up")
            && operator.sees("dc1 edge-2 silent")
            && !operator.sees("dc1 edge-2 silent -")
    });
    until("the row of a peer", LONG, || {
        has_row(&edge.settings, "dc1 edge-2 silent -")
    });
    // The server that the leaf node is connected to, whichever that is, goes away.
    let mut time = 2000;
    for at in [0, 1] {
        servers[at].kill();
        // What is published before the leaf node is connected again is lost.
        operator.keeps(&edge, &mut time, &format!("10.0.1.{}", 20 + at));
        servers[at].run();
    }
}

#[test]
fn three_nodes_keep_the_history_though_one_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Nats::three(folder.path(), |text| text);
    let addresses = addresses(&servers);
    let operator = Operator::new(folder.path(), &addresses);
    operator.set_up(3);
    let edge = Edge::start(folder.path(), 1, &addresses, "change-me-1");
    let mut time = 1000;
    let mut hosts = vec!["10.0.1.7".to_owned()];
    operator.keeps(&edge, &mut time, &hosts[0]);
    for (server, n) in servers.iter_mut().zip(20..) {
        server.kill();
        hosts.push(format!("10.0.1.{n}"));
        operator.keeps(&edge, &mut time, &hosts[hosts.len() - 1]);
        for host in &hosts {
            let line = format!("cnp to {host}");
            until(&line, LONG, || operator.shows(host, &line));
        }
        server.run();
        // The loss of a second node before the first has caught up is another law's.
        until("each node has the stream", LONG, || are_current(&addresses));
    }
}
