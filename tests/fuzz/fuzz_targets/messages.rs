//! Fuzz target of the messages between feeds: whatever one peer sends, this box's memory is bounded, its own messages have their length, and
//! its copy of another, honest peer is that peer's ends. Most messages have the form of one.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use npcc_api::ends::{End, EndRow, Key, Transport};
use npcc_feed::name::Name;
use npcc_feed::sync::{LONGEST, Limits, Machine, PARTS};
use serde_json::{Value, json};

/// Ends that this box holds of a peer at most.
const ENDS: usize = 6;

fuzz_target!(|bytes: &[u8]| {
    let [own, honest, forger] = ["a", "b", "c"].map(|name| name.parse::<Name>().unwrap());
    let limits = Limits { ends: ENDS, ..Limits::default() };
    let mut here = Machine::new(own.clone(), 1, &[honest.clone(), forger.clone()], &limits);
    let mut there = Machine::new(honest.clone(), 2, std::slice::from_ref(&own), &limits);
    let mut now = Duration::ZERO;
    let mut sent = BTreeSet::new();
    let mut rest = bytes;
    while let [how, len, tail @ ..] = rest {
        let (some, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        now += Duration::from_millis(u64::from(how >> 4) * 100);
        match how & 0x0f {
            0 => here.receive(now, &forger, some),
            1 => {
                let end = end(some);
                if sent.iter().any(|one: &End| one.key() == end.key()) || sent.len() < ENDS {
                    sent.retain(|one| one.key() != end.key());
                    sent.insert(end);
                    there.row(EndRow::End(end));
                }
            }
            2 => {
                let gone = key(some);
                sent.retain(|one| one.key() != gone);
                there.row(EndRow::Gone(gone));
            }
            3 => here.reconnected(now),
            4 => here.repeat_suggestions(now),
            5 => here.repeat_refused(now, &forger, 3, true),
            form => here.receive(now, &forger, message(form, some).to_string().as_bytes()),
        }
        while let Some(one) = there.publish(now) {
            here.receive(now, &honest, &one.bytes);
        }
        let mut messages = 0;
        while let Some(one) = here.publish(now) {
            assert!(one.bytes.len() <= LONGEST);
            messages += 1;
            assert!(messages < 2 * PARTS + 8, "no end of messages");
            if one.subject().ends_with(".b") {
                there.receive(now, &own, &one.bytes);
            }
        }
        while let Some((peer, rows)) = here.suggestions(100) {
            assert!(!rows.is_empty() && rows.len() <= 100);
            assert!(peer == forger || peer == honest);
        }
        assert!(here.ends_of(&forger).count() <= ENDS);
        let copy: BTreeSet<End> = here.ends_of(&honest).copied().collect();
        let keys = |ends: &BTreeSet<End>| ends.iter().map(End::key).collect::<BTreeSet<Key>>();
        assert_eq!(keys(&copy), keys(&sent));
    }
});

/// Returns a number of these octets.
fn number(octets: &[u8]) -> u64 {
    octets.iter().take(8).fold(0, |all, octet| all << 8 | u64::from(*octet))
}

fn key(octets: &[u8]) -> Key {
    let at = |at: usize| octets.get(at).copied().unwrap_or_default();
    Key { from: [10, 0, 2, at(0) % 4].into(), to: [10, 0, 1, at(1) % 4].into(), queue_pair: u32::from(at(2) % 4), udp_port: u16::from(at(3) % 2) }
}

fn end(octets: &[u8]) -> End {
    let Key { from, to, queue_pair, udp_port } = key(octets);
    let seen = number(octets.get(4..).unwrap_or_default());
    let acked_psn = (seen % 2 == 0).then_some(7);
    End { from, to, queue_pair, udp_port, transport: Transport::Rc, first_seen: seen, last_seen: seen, packets: seen, acked_psn, acked_at: acked_psn.map(|_| seen) }
}

/// Returns a message of this form with numbers of these octets.
fn message(form: u8, octets: &[u8]) -> Value {
    let [epoch, octets @ ..] = octets else { return Value::Null };
    let first = number(octets.get(..2).unwrap_or_default());
    let wide = number(octets);
    let rows = || -> Vec<Value> {
        let row = |some: &[u8]| match some[0] & 3 {
            0 => serde_json::to_value(EndRow::Gone(key(&some[1..]))).unwrap(),
            1 => serde_json::to_value(EndRow::Lost { count: 1 }).unwrap(),
            _ => serde_json::to_value(EndRow::End(end(&some[1..]))).unwrap(),
        };
        octets.chunks_exact(7).map(row).collect()
    };
    let parts = || -> Vec<Value> {
        let part = |some: &[u8]| {
            let part = u16::from_be_bytes([some[0] & 7, some[1]]);
            let rows: Vec<End> = some[2..].chunks_exact(7).map(end).collect();
            json!({"part": part, "rows": rows})
        };
        octets.chunks(16).filter(|some| some.len() > 2).map(part).collect()
    };
    let body = match form {
        6 | 7 => json!({"delta": {"first": first, "rows": rows()}}),
        8 => json!({"delta": {"first": wide, "rows": rows()}}),
        9 => json!({"heartbeat": {"sequence": first, "hash": wide}}),
        10 => json!({"heartbeat": {"sequence": wide, "hash": wide}}),
        11 => json!({"digest": {"sequence": first, "hashes": vec![wide; PARTS]}}),
        12 => json!({"request": {"parts": octets.chunks_exact(2).map(|two| number(two) % 1_025).collect::<Vec<_>>()}}),
        13 => json!({"parts": {"sequence": wide, "parts": parts()}}),
        _ => json!({"parts": {"sequence": first, "parts": parts()}}),
    };
    json!({"v": 1, "box": "c", "epoch": epoch % 3, "body": body})
}
