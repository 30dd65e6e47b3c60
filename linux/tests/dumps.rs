//! Dumps of a kernel that changes meanwhile remove nothing that is still there. Root is needed.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::live::Live;
use npcc_linux::netlink::handle::Notice;
use npcc_linux::netlink::report::Reason;
use npcc_pipeline::route::prefix::Prefix;
use npcc_testkit::wait;

/// Compares for a while, as often as it can, while other routes come and go; returns the untouched prefixes that were ever removed.
fn compare_under(
    live: &Live,
    untouched: impl Fn(&Prefix) -> bool,
    churn: impl Fn(u32) -> Vec<String> + Sync,
) -> Vec<Prefix> {
    // The stimulus lasts for so long.
    let until = Instant::now() + Duration::from_secs(3);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0.. {
                live.batch(churn(round).into_iter());
                if Instant::now() > until {
                    break;
                }
            }
        });
        while Instant::now() < until {
            live.handle().compare().unwrap();
        }
    });
    let book = live.book.0.lock().unwrap();
    book.removed
        .iter()
        .filter(|one| untouched(one))
        .copied()
        .collect()
}

/// Prefixes of which the lower come and go; the kernel dumps the lower first.
fn six(low: bool, n: u32) -> String {
    format!("2a0{}:{n:x}::/48", u8::from(!low))
}

fn keeps_ipv6_routes(test: &str, receive_buffer: usize) {
    let live = Live::with(test, receive_buffer, vec![]);
    let add = |n| format!("route add {} via 2001:db8::2", six(false, n));
    live.batch((0..20_000).map(add));
    live.until("all are there", |book| {
        (0..20_000).step_by(7).all(|n| book.has(&six(false, n)))
    });
    let top: Prefix = crate::common::prefix("2a01::/16");
    let gone = compare_under(
        &live,
        |one| one.len() == 48 && one.covering(16) == top,
        |round| {
            let verb = ["add", "del"][(round & 1) as usize];
            (0..500)
                .map(|n| format!("route {verb} {} via 2001:db8::2", six(true, n)))
                .collect()
        },
    );
    assert!(
        gone.is_empty(),
        "{} of 20,000, as {:?}",
        gone.len(),
        gone[0]
    );
    live.settle();
    live.equal("in the end");
}

#[test]
fn an_ipv6_route_that_nobody_touches_stays_while_others_go() {
    keeps_ipv6_routes("sixes", 16 << 20);
}

#[test]
fn an_ipv6_route_that_nobody_touches_stays_while_messages_are_lost() {
    keeps_ipv6_routes("sixlost", 16 << 10);
}

/// Law: where messages are lost during a dump, another is made; one that loses some again and again is not whole. The kernel's dumps of IPv4
/// routes are whole by themselves.
#[test]
fn messages_lost_during_a_dump_mean_another_dump() {
    let live = Live::with("relost", 1, vec![]);
    let route =
        |verb: &str, n: u32| format!("route {verb} 70.{}.{}.0/24 via 10.0.1.2", n >> 8, n & 255);
    // A dump that is longer than a time slice, and two who change routes meanwhile. A flush deletes sixty in a system call, and the socket holds
    // two: each dump loses some, however fast the machine is.
    live.batch((0..20_000).map(|n| route("add", n)));
    let (until, stop) = (Instant::now() + wait::LONG, AtomicBool::new(false));
    let mut lost = false;
    std::thread::scope(|threads| {
        let change = |first: u32| {
            while !stop.load(Ordering::Relaxed) {
                let own = (first..first + 1_000)
                    .map(|n| route("add", n) + &format!(" proto {}", first / 1_000 + 200));
                live.batch(own);
                live.ip(&format!("route flush proto {}", first / 1_000 + 200));
            }
        };
        for first in [20_000, 21_000] {
            threads.spawn(move || change(first));
        }
        while !lost && Instant::now() < until {
            std::thread::sleep(wait::STEP);
            let notices = live.notices.lock().unwrap();
            lost = notices.iter().any(|notice| {
                matches!(notice, Notice::Compared(report) if report.reason == Reason::Overrun && !report.whole)
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(lost, "{:?}", live.handle().status().counts);
    live.settle();
    live.equal("in the end");
}

#[test]
fn a_host_that_nobody_touches_stays_while_others_go() {
    let live = Live::open("hosts");
    live.ip("addr add 10.8.0.1/16 dev p0");
    let host = |n: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a08_0100 + n));
    let put = |n: u32| {
        format!(
            "neigh replace {} dev p0 lladdr 02:00:00:08:00:01 nud permanent",
            host(n)
        )
    };
    live.batch((0..4_000).map(put));
    let there = |n: u32| format!("{}/32", host(n));
    live.until("all are there", |book| {
        (0..4_000).all(|n| book.has(&there(n)))
    });
    let own: Vec<Prefix> = (0..4_000).map(|n| Prefix::host(host(n))).collect();
    let gone = compare_under(
        &live,
        |one| own.contains(one),
        |round| {
            let others = 4_000..5_000u32;
            let line = |n: u32| match round & 1 {
                0 => put(n),
                _ => format!("neigh del {} dev p0", host(n)),
            };
            others.map(line).collect()
        },
    );
    assert!(gone.is_empty(), "{} of 4,000, as {:?}", gone.len(), gone[0]);
    live.settle();
    live.equal("in the end");
}
