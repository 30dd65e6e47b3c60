//! Rows of the table, as data.
//!
//! | kind of congestion | why its peak is bounded so |
//! |---|---|
//! | near senders | the larger of set-point (40 us) and `deep` (120 us), plus 50 us of the excess |
//! | far senders | one feedback delay of their excess besides |

use npcc_cnp::policy::PolicyName;

use super::Row;
use super::cell::{COMMON, FAR, Path, cell, review, row};
use super::closed::{small_pool, steps};
use super::rule::{Rule, halvings};
use super::text::Text;
use crate::matrix;
use crate::scenario::Scheme;

/// Cards of the row that is of all of them.
const CARDS: [&str; 5] = ["hpcc-vendor", "hpcc-reset", "paper", "mlx", "mlx-reset"];
/// Cells of the table by which the law of 2026-11-25 was accepted, and the peak that each may have, in MB.
const OLD: [(&str, f64); 10] = [
    ("steady hpcc-vendor 100G x4.00 100km", 3.375),
    ("steady paper 100G x4.00 100km", 3.375),
    ("steady some-rtt 100G x4.00 100km", 3.375),
    ("steady some-deaf 100G x4.00 100km", 3.375),
    ("bursts some-rtt 100G x4.00 100km", 3.375),
    ("paused hpcc-vendor 400G x1.25 100km", 6.625),
    ("near-leaf hpcc-vendor 100G x4.00 100km", 3.375),
    ("far-host hpcc-vendor 100G x4.00 100km", 3.375),
    ("deaf-host hpcc-vendor 100G x4.00 100km", 3.375),
    ("steady mlx-bytes 100G x4.00 100km", 3.375),
];

/// Returns the rows.
#[must_use]
pub fn rows() -> Vec<Row> {
    vec![
        distances(),
        short_flows(),
        steps(),
        small_pool(),
        goodput(),
        many_flows(),
        crowds(),
        bursts(),
        unresponsive(),
        old(),
        adversary(),
    ]
}

/// Returns the policies that are run: the default first.
#[must_use]
pub fn policies() -> Vec<Scheme> {
    let mut names = PolicyName::ALL.to_vec();
    names.sort_by_key(|name| *name != PolicyName::default());
    let scheme = |policy| Scheme {
        policy: Some(policy),
        ..Scheme::NPCC
    };
    names.into_iter().map(scheme).collect()
}

fn distances() -> Row {
    let mut cases = Vec::new();
    // 300 Gb/s of excess; 700, and 350 of them of far senders, whose feedback takes 1 ms.
    for (name, file, peak) in [
        (
            "near-far-receivers",
            review!("rttmix-receivers"),
            1.5 + 1.875,
        ),
        (
            "near-far-senders",
            review!("rttmix-senders"),
            1.5 + 4.375 + 43.75,
        ),
    ] {
        for sender in CARDS {
            let name = format!("{name} {sender}");
            let cell = cell(Text::of(file), &name, sender, "", FAR);
            cases.push((cell, Rule::Shares(peak)));
        }
    }
    let wanted = "each class within 10 % of its fair share; peak: the larger of set-point and deep, plus 50 us of the excess, for far senders one feedback delay of theirs";
    Row {
        both: true,
        ..row("distances", wanted, cases)
    }
}

fn short_flows() -> Row {
    let mut cases = Vec::new();
    for (file, text) in [
        ("mice", review!("mice")),
        ("read-heavy", review!("read-heavy")),
        ("two-bottlenecks", review!("two-bottlenecks")),
        ("pfc-pool64", review!("pfc-pool64")),
    ] {
        for pool in ["unlimited", "64MB"] {
            for sender in COMMON {
                let name = format!("{file} {sender} {pool}");
                let text = Text::of(text);
                let text = if pool == "64MB" {
                    text.set("pool", pool).set("pfc", "true")
                } else {
                    text.set("pool", "null").set("pfc", "false")
                };
                cases.push((cell(text, &name, sender, "", FAR), Rule::ShortFlows));
            }
        }
    }
    row(
        "short flows",
        "p99 of mice at most half of the best of ecn, ecn-tuned; goodput, pauses, drops not worse than before",
        cases,
    )
}

fn goodput() -> Row {
    let mut cases = Vec::new();
    for queue_pairs in [1, 2, 4, 8] {
        for sender in COMMON {
            let name = format!("failover {queue_pairs}qp {sender}");
            let vary = format!(", qps: [{queue_pairs}]");
            let text = Text::of(review!("rate-drop"));
            let path = FAR.with(queue_pairs);
            cases.push((cell(text, &name, sender, &vary, path), Rule::Goodput));
        }
    }
    for (name, text) in [
        ("cnploss50", review!("cnploss50")),
        ("slow-receivers", review!("receivers-50us")),
        ("warm-joiners", review!("warm-joiners")),
        ("swift-half", review!("swift-half")),
    ] {
        for sender in COMMON {
            let name = format!("{name} {sender}");
            cases.push((cell(Text::of(text), &name, sender, "", FAR), Rule::Goodput));
        }
    }
    row(
        "goodput",
        "goodput at least 0.99 (0.97); Jain at least ecn's less 0.02",
        cases,
    )
}

fn many_flows() -> Row {
    let incast = halvings(63, 100.0, 6_300.0, 100.0);
    let one_host = halvings(64, 400.0, 400.0, 100.0);
    let mut cases = Vec::new();
    for (name, text, bound) in [
        ("incast63x1", review!("incast63x1"), incast),
        ("one-host-64qp", review!("one-host-64qp"), one_host),
    ] {
        for sender in COMMON {
            let name = format!("{name} {sender}");
            let cell = cell(Text::of(text), &name, sender, "", FAR.with(64));
            cases.push((cell, Rule::HalfPeak(bound)));
        }
    }
    row("many flows", "peak at most half of ecn's", cases)
}

fn crowds() -> Row {
    let path = Path {
        gbps: 400,
        ..FAR.with(16)
    };
    let mut cases = Vec::new();
    for (name, text) in [("16x16", review!("16x16")), ("16x125", review!("16x125"))] {
        for sender in COMMON {
            let name = format!("{name} {sender}");
            cases.push((
                cell(Text::of(text), &name, sender, "", path),
                Rule::NotWorse,
            ));
        }
    }
    row("crowds", "not worse than ecn by the measure", cases)
}

fn bursts() -> Row {
    let of = |sender: &&str| {
        let name = format!("micro-big {sender}");
        let text = Text::of(review!("micro-big"));
        (cell(text, &name, sender, "", FAR), Rule::NoCnps)
    };
    row("bursts of 52 us", "0 CNPs", COMMON.iter().map(of).collect())
}

fn unresponsive() -> Row {
    let path = Path { gbps: 1, ..FAR };
    let text = Text::of(review!("deaf-host-1g"));
    let cell = cell(text, "deaf-host-1g hpcc-vendor", COMMON[0], "", path);
    row(
        "unresponsive at 1G",
        "after the move the three have 0.9 of their fair share",
        vec![(cell, Rule::Class("obedient"))],
    )
}

fn old() -> Row {
    let all = matrix::cells();
    let known = |(name, peak): (&str, f64)| {
        let cell = all.iter().find(|cell| cell.name == name)?;
        Some((cell.clone(), Rule::Old(peak)))
    };
    row(
        "the old table",
        "peaks as in the first row; goodput and the rest not worse than before",
        OLD.into_iter().filter_map(known).collect(),
    )
}

fn adversary() -> Row {
    let text = Text::of(review!("adversary-pfc"));
    let cell = cell(text, "adversary-pfc mlx-bytes", "mlx-bytes", "", FAR);
    row(
        "byte counter in bytes",
        "goodput at least 0.94; pauses at most ecn's",
        vec![(cell, Rule::Adversary)],
    )
}
