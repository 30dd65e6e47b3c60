//! Load of many boxes on one nats-server: made-up ends, in pairs, each in use, so that a tenth of them is published every second.
//!
//!     nats-server -a 127.0.0.1 -p 4299 &
//!     cargo run --release -p npcc-feed --example load -- nats://127.0.0.1:4299 $! BOXES ENDS SECONDS
//!
//! Prints what the first exchange and then each second cost: messages, bytes, and processor time of nats-server and of all feeds together. Feeds
//! read each refresh from a line of JSON, as from their switch, and encode what they would suggest to it; sockets of switches are left out.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that measures"
)]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use npcc_api::ends::{End, EndRow, Transport};
use npcc_feed::bus::{BusCounts, Link};
use npcc_feed::name::Name;
use npcc_feed::settings::Settings;
use npcc_feed::sync::{Limits, Machine};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, channel};

/// Time between two refreshes of an end, in seconds.
const REFRESH: u32 = 10;

struct Edge {
    machine: Machine,
    link: Link,
    name: Name,
    messages: Receiver<Vec<u8>>,
    peer: Name,
}

fn end(number: u32, second: u64) -> End {
    let [_, a, b, c] = number.to_be_bytes();
    End {
        from: IpAddr::from([10, 2, b, c]),
        to: IpAddr::from([10, 1, b, c]),
        queue_pair: u32::from_be_bytes([0, a, b, c]) + 2,
        udp_port: 49152,
        transport: Transport::Rc,
        first_seen: 1_764_000_000_000_000,
        last_seen: 1_764_000_000_000_000 + second * 1_000_000,
        packets: second * 1000,
        acked_psn: number.checked_rem(2),
        acked_at: None,
    }
}

fn name(number: u32) -> Name {
    format!("edge-{number}").parse().unwrap()
}

async fn start(server: &str, number: u32, ends: u32, counts: &Arc<BusCounts>) -> Edge {
    let (own, peer) = (name(number), name(number ^ 1));
    let text =
        format!("site: load\nbox: {own}\npeers: [{peer}]\nbus: {{ servers: ['{server}'] }}\n");
    let settings = Settings::parse("load", &text).unwrap().model;
    let link = Link::open(&settings.bus, &settings.prefix(), counts)
        .await
        .unwrap();
    let (to, messages) = channel(1024);
    let subject = format!("npcc.load.{peer}.ends.>");
    link.subscribe(subject, to, |_, bytes| Some(bytes.to_vec()))
        .await
        .unwrap();
    let mut machine = Machine::new(
        own.clone(),
        u64::from(number) + 77,
        std::slice::from_ref(&peer),
        &Limits::default(),
    );
    (0..ends).for_each(|at| machine.row(EndRow::End(end(at, 0))));
    Edge {
        machine,
        link,
        name: own,
        messages,
        peer,
    }
}

/// Publishes and receives what there is; encodes and drops what would be suggested to a switch.
async fn step(one: &mut Edge, now: Duration) {
    while let Ok(bytes) = one.messages.try_recv() {
        one.machine.receive(now, &one.peer, &bytes);
    }
    for _ in 0..64 {
        let Some(out) = one.machine.publish(now) else {
            break;
        };
        let subject = format!("npcc.load.{}.{}", one.name, out.subject());
        one.link.publish(&subject, &out.bytes).await;
    }
    while let Some((peer, rows)) = one.machine.suggestions(1024) {
        let request = json!({"suggest": {"peer": peer, "rows": rows}});
        std::hint::black_box(request.to_string());
    }
}

/// Gives a feed the row of an end as its switch does: a line of JSON.
fn refresh(machine: &mut Machine, end: End) {
    let line = serde_json::to_string(&EndRow::End(end)).unwrap();
    machine.row(serde_json::from_str(&line).unwrap());
}

/// Processor time of a process in seconds, from ticks of 10 ms.
fn processor(id: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, server_id, boxes, ends, seconds] = arguments.as_slice() else {
        println!("load ADDRESS PID BOXES ENDS SECONDS");
        return;
    };
    let [count, ends, seconds] =
        [boxes, ends, seconds].map(|number| number.parse::<u32>().unwrap());
    let counts = Arc::<BusCounts>::default();
    let mut boxes = Vec::new();
    for number in 0..count {
        boxes.push(start(server, number, ends, &counts).await);
    }
    while !boxes.iter().all(|one| one.link.is_up()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let started = Instant::now();
    let before = (processor(server_id), processor("self"));
    let is_full = |one: &Edge| one.machine.ends_of(&one.peer).count() == ends as usize;
    while !boxes.iter().all(is_full) {
        for one in &mut boxes {
            step(one, started.elapsed()).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let first = counts.values();
    let middle = (processor(server_id), processor("self"));
    println!(
        "first exchange: {} messages, {:.1} MB, nats-server {:.2} s, feeds {:.2} s",
        first.published,
        first.published_bytes as f64 / 1e6,
        middle.0 - before.0,
        middle.1 - before.1
    );
    let refreshes = Instant::now();
    for second in 0..seconds {
        let until = Instant::now() + Duration::from_secs(1);
        for one in &mut boxes {
            let due = (second % REFRESH..ends).step_by(REFRESH as usize);
            let seen = u64::from(second / REFRESH + 1) * 10;
            due.for_each(|at| refresh(&mut one.machine, end(at, seen)));
        }
        // A machine with few cores takes longer than a second for what falls due in one.
        loop {
            for one in &mut boxes {
                step(one, started.elapsed()).await;
            }
            if Instant::now() >= until && boxes.iter().all(|one| one.machine.is_published()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let (last, after) = (counts.values(), (processor(server_id), processor("self")));
    let elapsed = refreshes.elapsed().as_secs_f64();
    let slower = elapsed / f64::from(seconds);
    if slower > 1.05 {
        println!("too much for this machine: each second's refreshes took {slower:.2} s");
    }
    let a_second = |total: f64| total / elapsed;
    println!(
        "each second: {:.0} messages, {:.2} MB, nats-server {:.1} % of a core, each feed {:.2} %",
        a_second((last.published - first.published) as f64),
        a_second((last.published_bytes - first.published_bytes) as f64) / 1e6,
        100.0 * a_second(after.0 - middle.0),
        100.0 * a_second(after.1 - middle.1) / f64::from(count)
    );
}
