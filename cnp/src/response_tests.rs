//! How a host answers, against hosts made up.

use super::*;

const CONFIG: ResponseConfig = ResponseConfig {
    feedback: Nanos::from_micros(20),
    window: Nanos::from_micros(100),
};

/// A flow of 1,000 bytes a window, looked at every 20 us.
#[derive(Default)]
struct Bed {
    watch: ResponseWatch,
    now: Nanos,
    total: u64,
    /// What may have been allowed of more than was sent; nothing but by a full link.
    allowed: u32,
}

impl Bed {
    /// So many looks while it sends so much a window, of 1,000 before, and is told every so many looks that each cost this share.
    fn run(&mut self, looks: u64, rate: u64, every: u64, share: u32) -> Vec<Measured> {
        let mut found = Vec::new();
        for look in 0..looks {
            if every > 0 && look % every == 0 {
                self.watch.record_cnp_sent(self.now, 1_000, share, ONE);
            }
            self.now += Nanos::from_micros(20);
            self.total += rate / 5;
            found.extend(
                self.watch
                    .observe(self.now, self.total, &CONFIG, |_, _| self.allowed.max(ONE)),
            );
        }
        found
    }

    /// Tells it once, then lets it send `after` a window.
    fn measure(&mut self, after: u64) -> Response {
        self.run(12, after, 100, ONE / 2);
        self.watch.last()
    }
}

#[test]
fn effects_are_graded() {
    for (after, grade) in [
        (100, Response::Halved),
        (500, Response::Halved),
        (800, Response::Weak),
        (1_000, Response::None),
        // Its application sends more: what it would have sent is not known.
        (2_000, Response::Unknown),
    ] {
        assert_eq!(Bed::default().measure(after), grade, "{after}");
    }
}

/// A burst that ends after the CNP looks the same from a deaf sender as from one that answers; what a rate limiter holds still sends.
#[test]
fn silence_proves_nothing() {
    let mut bed = Bed::default();
    assert_eq!(bed.run(12, 0, 100, ONE / 2), []);
    assert_eq!(bed.watch.last(), Response::Unknown);
    for _ in 0..3 {
        bed.measure(1_000);
    }
    assert!(bed.watch.is_unresponsive());
    for _ in 0..6 {
        bed.measure(0);
    }
    assert!(bed.watch.is_unresponsive(), "its bursts ended");
}

#[test]
fn three_misses_make_unresponsive_and_one_fall_does_not_unmake_it() {
    let mut bed = Bed::default();
    for miss in 1..=3 {
        assert!(!bed.watch.is_unresponsive(), "before miss {miss}");
        bed.measure(1_000);
    }
    assert!(bed.watch.is_unresponsive());
    bed.measure(500);
    assert!(bed.watch.is_unresponsive(), "its application paused");
    bed.measure(1_000);
    for _ in 0..3 {
        assert!(bed.watch.is_unresponsive());
        bed.measure(500);
    }
    assert!(!bed.watch.is_unresponsive());
}

/// Back at its rate 30 us after the feedback delay.
#[test]
fn an_effect_that_does_not_last_is_none() {
    let mut bed = Bed::default();
    bed.run(1, 500, 1, ONE / 2);
    bed.run(2, 500, 0, 0);
    let found = bed.run(9, 1_000, 0, 0);
    assert_eq!(found.len(), 1);
    assert!(!found[0].worked && bed.watch.last() == Response::None);
}

/// DCQCN wins back half of the way to its target 300 us after a cut. The CNP for that met senders whose rate had not risen yet when it was
/// read: the cut after the rise showed as none, and hosts that answer were left to ECN in two runs of eight.
#[test]
fn what_is_won_back_at_the_first_cnp_is_no_answer() {
    let mut bed = Bed::default();
    bed.watch.record_cnp_sent(bed.now, 1_000, ONE / 2, ONE);
    bed.run(13, 500, 0, 0);
    assert_eq!(bed.watch.last(), Response::Halved);
    // 260 us later, at half its rate: it rises to three quarters, and two cuts of a fifth take it to where it was.
    for _ in 0..2 {
        bed.watch.record_cnp_sent(bed.now, 500, ONE / 5, ONE);
    }
    let found = bed.run(12, 480, 0, 0);
    assert!(found.iter().all(|found| found.worked), "{found:?}");
    // One that hears nothing is found out by its first CNP, as nothing was taken from it before.
    let mut deaf = Bed::default();
    assert_eq!(deaf.measure(1_000), Response::None);
    assert_eq!(deaf.measure(1_000), Response::None);
}

/// Four flows share a full link: each is seen with a quarter of what its sender's link carries, and its first two cuts by half are not
/// missed; what waits before the link comes at the old rate for half a millisecond more.
#[test]
fn what_a_full_link_holds_back_is_no_disobedience() {
    let mut bed = Bed {
        allowed: 4 * ONE,
        ..Bed::default()
    };
    assert_eq!(bed.run(20, 1_000, 100, ONE / 2), [], "the first");
    assert!(!bed.watch.is_measured(), "it may be told again");
    assert_eq!(bed.run(6, 1_000, 3, ONE / 2), [], "two more");
    assert_eq!(bed.run(25, 1_000, 0, 0), [], "what waits is on its way");
    let found = bed.run(12, 500, 0, 0);
    assert_eq!(found.len(), 1);
    // How deep one cut is cannot be told.
    assert_eq!((found[0].worked, found[0].after), (true, None));
}

/// Two flows fill their host's link, each at half of what its limiter allows, and DCQCN as published wins half of a cut back within 55 us:
/// two cuts by half leave the link as full as before, and the host was taken for deaf (`storage`, 20.1 MB instead of 5.0).
#[test]
fn flows_that_fill_their_own_hosts_link_get_time_to_show_an_effect() {
    let mut bed = Bed {
        allowed: 2 * ONE,
        ..Bed::default()
    };
    for _ in 0..3 {
        bed.watch.record_cnp_sent(bed.now, 1_000, ONE / 2, 2 * ONE);
        assert_eq!(bed.run(3, 970, 0, 0), []);
    }
    assert_eq!(
        bed.run(6, 970, 0, 0),
        [],
        "a link that is full proves nothing"
    );
    let found = bed.run(12, 700, 0, 0);
    assert!(found.iter().all(|found| found.worked) && !found.is_empty());
}

/// A deaf sender by a link that others share is found all the same, but for so long; by a link of its own at once.
#[test]
fn a_deaf_sender_by_a_full_link_is_found_within_milliseconds() {
    let mut bed = Bed {
        allowed: 4 * ONE,
        ..Bed::default()
    };
    let found = bed.run(150, 1_000, 5, ONE / 2);
    assert!(!found.is_empty() && found.iter().all(|found| !found.worked));
    assert_eq!(Bed::default().measure(1_000), Response::None);
    let mut own = Bed {
        allowed: ONE / 8 * 9,
        ..Bed::default()
    };
    assert_eq!(own.measure(1_000), Response::None);
}

#[test]
fn small_cuts_add_up_until_their_effect_must_show() {
    // 1 % each, 60 us apart, as of `pi` when alpha has faded: 23 of them.
    let mut deaf = Bed::default();
    let found = deaf.run(300, 1_000, 3, ONE / 100);
    assert!((2..=4).contains(&found.len()) && found.iter().all(|found| !found.worked));
    // 0.5 % each, 300 us apart: the sender wins back more than they take.
    let mut well = Bed::default();
    assert_eq!(well.run(1_000, 1_000, 15, ONE / 200), []);
    assert!(!well.watch.is_unresponsive());
}

#[test]
fn a_cut_deeper_than_expected_is_seen_with_the_time_since_the_one_before() {
    let mut bed = Bed::default();
    bed.measure(500);
    bed.run(50, 1_000, 0, 0);
    let found = bed.run(12, 500, 100, ONE / 100);
    let gap = Nanos::from_micros(20 * 62);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].worked, found[0].after), (true, Some((gap, 1))));
}

#[test]
fn a_measurement_missed_is_no_answer() {
    let mut watch = ResponseWatch::default();
    watch.record_cnp_sent(Nanos::ZERO, 1_000, ONE / 2, ONE);
    watch.observe(Nanos::from_millis(10), 1_000_000, &CONFIG, |_, _| ONE);
    watch.observe(Nanos::from_millis(20), 2_000_000, &CONFIG, |_, _| ONE);
    assert_eq!(watch.last(), Response::Unknown);
}
