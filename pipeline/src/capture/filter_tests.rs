//! Tests of the filter language and of matching, against the fields that each frame was made of.

use std::net::IpAddr;

use proptest::prelude::*;

use super::{Fields, Filter, MOST_TESTS, Seen};
use crate::craft::Craft;
use crate::drop::DropReason;
use crate::units::Priority;
use crate::wire::mac_control;

/// Frame together with the fields it was made of, which no parser of ours has read.
#[derive(Debug, Clone)]
struct Made {
    craft: Craft,
    seen: Seen,
    priority: u8,
}

impl Made {
    fn matches(&self, text: &str) -> bool {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        filter.matches(
            &Fields::of(&self.craft.frame()),
            self.seen,
            Some(Priority::new(self.priority)),
        )
    }
}

/// Expression, as fully parenthesized text and as its meaning.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(String, bool),
    Not(Box<Tree>),
    Both(Box<Tree>, bool, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Leaf(text, _) => text.clone(),
            Tree::Not(one) => format!("not ({})", one.text()),
            Tree::Both(left, true, right) => format!("({}) and ({})", left.text(), right.text()),
            Tree::Both(left, false, right) => format!("({})||!!({})", left.text(), right.text()),
        }
    }

    fn means(&self) -> bool {
        match self {
            Tree::Leaf(_, means) => *means,
            Tree::Not(one) => !one.means(),
            Tree::Both(left, true, right) => left.means() && right.means(),
            Tree::Both(left, false, right) => left.means() || right.means(),
        }
    }
}

/// Returns true if an address lies in a prefix, compared bit by bit.
fn within(address: IpAddr, prefix: IpAddr, len: usize) -> bool {
    let bits = |address: IpAddr| -> Vec<bool> {
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        let of = |octet: u8| (0..8).map(move |bit| octet >> (7 - bit) & 1 == 1);
        octets.into_iter().flat_map(of).collect()
    };
    address.is_ipv4() == prefix.is_ipv4() && bits(address)[..len] == bits(prefix)[..len]
}

fn end_of<T: Copy>(end: u8, (src, dst): (T, T), test: impl Fn(T) -> bool) -> (&'static str, bool) {
    match end % 3 {
        0 => ("", test(src) || test(dst)),
        1 => ("src ", test(src)),
        _ => ("dst ", test(dst)),
    }
}

/// Returns a test with these random numbers, and true if the frame satisfies it by how it was made, not by how it is parsed.
#[expect(
    clippy::too_many_lines,
    reason = "a case for each test of the language"
)]
fn leaf(made: &Made, what: u8, end: u8, near: bool, number: u32) -> (String, bool) {
    let craft = &made.craft;
    let bth = craft.bth.unwrap();
    let pick = |own: u32, most: u32| if near { own } else { number % (most + 1) };
    let is_v4 = craft.src.is_ipv4();
    match what % 17 {
        0 => {
            let other: IpAddr = if number.is_multiple_of(2) {
                "10.0.1.77"
            } else {
                "2001:db8::77"
            }
            .parse()
            .unwrap();
            let host = if near { craft.dst } else { other };
            let (word, holds) = end_of(end, (craft.src, craft.dst), |one| one == host);
            (format!("{word}host {host}"), holds)
        }
        1 => {
            let base = if near {
                craft.src
            } else {
                "10.0.2.0".parse().unwrap()
            };
            let len = number as usize % (if base.is_ipv4() { 33 } else { 129 });
            let (word, holds) = end_of(end, (craft.src, craft.dst), |one| within(one, base, len));
            (format!("{word}net {base}/{len}"), holds)
        }
        2 => {
            let port = pick(craft.src_port.into(), 65_535);
            let ports = (u32::from(craft.src_port), u32::from(craft.dst_port));
            let (word, holds) = end_of(end, ports, |one| one == port);
            (format!("udp {word}port {port}"), holds)
        }
        3 => {
            let (word, holds) = end_of(end, (craft.src_mac, craft.dst_mac), |one| {
                one == craft.src_mac
            });
            (format!("{word}mac {}", craft.src_mac), holds)
        }
        4 => ("vlan".to_owned(), !craft.tags.is_empty()),
        5 => {
            let own = craft.tags.first().map(|tci| u32::from(tci & 0xfff));
            let id = pick(own.unwrap_or(5), 4095);
            (format!("vlan {id}"), own == Some(id))
        }
        6 => {
            let dscp = pick(u32::from(craft.tos >> 2), 63);
            (format!("dscp {dscp}"), u32::from(craft.tos >> 2) == dscp)
        }
        7 => {
            let name = ["not-ect", "ect1", "ect0", "ce"][number as usize % 4];
            (
                format!("ecn {name}"),
                u32::from(craft.tos & 3) == number % 4,
            )
        }
        8 => {
            let qp = pick(bth.dest_qp, 0xff_ffff);
            (format!("dqpn 0x{qp:x}"), bth.dest_qp == qp)
        }
        9 => {
            let opcode = pick(bth.opcode.into(), 255);
            (format!("opcode {opcode}"), u32::from(bth.opcode) == opcode)
        }
        10 => ("cnp".to_owned(), bth.opcode == 0x81),
        11 => (if is_v4 { "ip" } else { "ip6" }.to_owned(), true),
        12 => ("tcp or pfc".to_owned(), false),
        13 => {
            let priority = pick(made.priority.into(), 7);
            (
                format!("queue {priority}"),
                u32::from(made.priority) == priority,
            )
        }
        14 => {
            let reason = DropReason::ALL[number as usize % DropReason::COUNT];
            let reason = if let (true, Seen::Dropped(own)) = (near, made.seen) {
                own
            } else {
                reason
            };
            (
                format!("reason {}", reason.name()),
                made.seen == Seen::Dropped(reason),
            )
        }
        15 => (
            "not (received or sent)".to_owned(),
            matches!(made.seen, Seen::Dropped(_)),
        ),
        _ => {
            let len = pick(u32::try_from(craft.frame().len()).unwrap(), 2000);
            (
                format!("greater {len}"),
                craft.frame().len() >= len as usize,
            )
        }
    }
}

fn made() -> impl Strategy<Value = Made> {
    let frames = (
        any::<bool>(),
        any::<[u8; 2]>(),
        any::<u8>(),
        0u32..1 << 24,
        0usize..200,
    );
    let more = (
        any::<u16>(),
        prop::collection::vec(any::<u16>(), 0..3),
        0u8..3,
        0..DropReason::COUNT,
        0u8..8,
    );
    (frames, more).prop_map(
        |((v6, [tos, opcode], host, qp, payload), (port, tags, seen, reason, priority))| {
            let ends = if v6 {
                (format!("2001:db8::{host:x}"), "2001:db8:2::1".to_owned())
            } else {
                (format!("10.0.1.{host}"), "10.0.2.2".to_owned())
            };
            let opcode = if opcode % 4 == 0 { 0x81 } else { opcode };
            let mut craft = Craft::roce(
                ends.0.parse().unwrap(),
                ends.1.parse().unwrap(),
                opcode,
                qp,
                payload,
            );
            (craft.tos, craft.src_port, craft.tags) = (tos, port, tags);
            let seen = [
                Seen::Received,
                Seen::Sent,
                Seen::Dropped(DropReason::ALL[reason]),
            ][usize::from(seen)];
            Made {
                craft,
                seen,
                priority,
            }
        },
    )
}

/// Generates a frame and an expression tree over it.
fn with_tree() -> impl Strategy<Value = (Made, Tree)> {
    made().prop_flat_map(|made| {
        let of = made.clone();
        let leaves = any::<(u8, u8, bool, u32)>().prop_map(move |(what, end, near, number)| {
            let (text, means) = leaf(&of, what, end, near, number);
            Tree::Leaf(text, means)
        });
        let tree =
            leaves.prop_recursive(5, 20, 2, |inner| {
                prop_oneof![
                    inner.clone().prop_map(|one| Tree::Not(Box::new(one))),
                    (inner.clone(), any::<bool>(), inner).prop_map(
                        |(left, and, right)| Tree::Both(Box::new(left), and, Box::new(right))
                    ),
                ]
            });
        (Just(made), tree)
    })
}

proptest! {
    #![proptest_config(crate::cases::cases(2_000))]

    /// A frame matches exactly when its maker says so, and a stage that cannot match is excluded by the sightings.
    #[test]
    fn matches_as_a_naive_reading_of_the_tree((made, tree) in with_tree()) {
        let text = tree.text();
        let Ok(filter) = Filter::parse(&text) else {
            // Only for its size or depth.
            let error = Filter::parse(&text).unwrap_err().to_string();
            prop_assert!(error.contains("more than"), "{text}: {error}");
            return Ok(());
        };
        prop_assert_eq!(made.matches(&text), tree.means(), "{}", text);
        let sightings = filter.sightings();
        let possible = match made.seen {
            Seen::Received => sightings.received,
            Seen::Sent => sightings.sent,
            Seen::Dropped(_) => sightings.dropped,
        };
        prop_assert!(possible || !tree.means(), "{text}: {sightings:?}");
    }

    /// Any text is a filter, or is refused at one of its characters or right behind them.
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![
        "\\PC{0,60}",
        prop::collection::vec(prop::sample::select(&[
            "roce", "not", "!", "(", ")", "and", "or", "&&", "host", "10.0.1.3", "net", "10.0.0.0/33", "::/0", "port", "udp", "src", "dst", "vlan", "0x",
            "0xfffffff", "7", "ecn", "ce", "reason", "no_route", "class", "qpn", "mac", "2:0:0:0:0:1", "é", "less", "-1", "99999999999",
        ][..]), 0..30).prop_map(|words| words.join(" ")),
    ]) {
        match Filter::parse(&text) {
            Ok(filter) => {
                let _ = filter.sightings();
                let _ = filter.matches(&Fields::default(), Seen::Sent, None);
            }
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
                prop_assert!(!error.what.is_empty());
            }
        }
    }
}

#[test]
fn errors_point_at_the_word_that_is_wrong() {
    for (text, column, what) in [
        ("host", 5, "`host` needs an address"),
        (
            "roce and host 10.0.1.300",
            15,
            "`10.0.1.300` is not an address",
        ),
        ("roce hots 10.0.1.3", 6, "`and`, `or` or the end"),
        ("hots 10.0.1.3", 1, "`hots` is no test"),
        ("(roce and cnp", 14, "`)` is missing"),
        ("roce and", 9, "a test is missing"),
        ("roce and cnp or pfc", 14, "parentheses"),
        ("net 10.0.0.0/40", 5, "a prefix such as"),
        ("dscp 64", 6, "from 0 to 63"),
        ("é and dscp 64", 1, "`é` is no test"),
        ("reason thirst", 8, "no drop reason: runt, "),
        ("vlan 5000", 6, "from 0 to 4095"),
        (
            "src 10.0.1.3",
            5,
            "`host`, `net`, `port` or `mac` must follow",
        ),
        ("qpn 0x1000000", 5, "0x"),
        ("roce )", 6, "`)` where"),
        ("ecn high", 5, "or ce, ect0, ect1 or not-ect"),
    ] {
        let error = Filter::parse(text).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.what.contains(what), "{text}: {error}");
    }
}

#[test]
fn a_filter_is_bounded_in_tests_in_depth_and_in_length() {
    let many = |count: usize| vec!["roce"; count].join(" and ");
    assert!(Filter::parse(&many(MOST_TESTS)).is_ok());
    let error = Filter::parse(&many(MOST_TESTS + 1)).unwrap_err();
    assert_eq!(error.column, 1 + MOST_TESTS * "roce and ".len());
    assert!(Filter::parse(&"not ".repeat(1_000)).is_err());
    assert!(Filter::parse(&format!("{}roce", "(".repeat(1_000))).is_err());
    assert!(Filter::parse(&" ".repeat(1 << 20)).is_err());
}

#[test]
fn what_is_never_wanted_is_not_looked_at() {
    let sightings = |text: &str| {
        let all = Filter::parse(text).unwrap().sightings();
        (all.received, all.sent, all.dropped)
    };
    assert_eq!(sightings(""), (true, true, true));
    assert_eq!(sightings("dropped and host 10.0.1.3"), (false, false, true));
    assert_eq!(sightings("not dropped"), (true, true, false));
    assert_eq!(sightings("reason wred or sent"), (false, true, true));
    assert_eq!(sightings("not (roce or received)"), (false, true, true));
    assert_eq!(sightings("received and sent"), (false, false, false));
}

#[test]
fn a_pfc_frame_is_of_the_priorities_that_it_names() {
    let frame = mac_control::build(
        crate::units::Mac([2, 0, 0, 0, 0, 1]),
        1 << 3 | 1 << 5,
        [9; 8],
    );
    let holds = |text: &str| {
        let filter = Filter::parse(text).unwrap();
        filter.matches(&Fields::of(&frame), Seen::Received, None)
    };
    assert!(holds("pfc") && holds("pfc and priority 3") && holds("priority 5"));
    assert!(!holds("priority 4") && !holds("roce") && !holds("host 10.0.1.1"));
}
