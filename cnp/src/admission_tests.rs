use super::*;
use crate::policy::Reason;

const PAIRED: Pairing = Pairing::Paired(Qpn::new(0x18), Evidence::PortHash);

fn decision(amount: Amount) -> Decision {
    Decision {
        wanted: amount,
        amount,
        choice: crate::policy::Choice::All,
        few: 50,
        spacing: Nanos::from_micros(60),
        reason: Reason::Filling,
    }
}

fn candidate() -> FlowCheck {
    FlowCheck {
        ipv6: false,
        pairing: PAIRED,
        signalled: None,
        passed: None,
        trusted: true,
        ingress: PortId(0),
    }
}

/// Settings with one port of this rate, 5 % of which CNPs may take.
fn settings(rate: u64, cap_per_second: u64) -> Settings {
    Settings {
        port_rates: vec![BitRate(rate)],
        cap_per_second,
        ..Settings::default()
    }
}

fn new_caps(rate: u64, cap_per_second: u64) -> CnpCaps {
    CnpCaps::new(&settings(rate, cap_per_second))
}

#[test]
fn few_is_a_twentieth_rounded_up() {
    for (contributors, few) in [(0, 0), (1, 1), (20, 1), (21, 2), (40, 2), (1000, 50)] {
        assert_eq!(
            CnpCaps::flows_reached(&decision(Amount::Few), contributors),
            few,
            "of {contributors}"
        );
    }
    assert_eq!(CnpCaps::flows_reached(&decision(Amount::Many), 7), 7);
    assert_eq!(CnpCaps::flows_reached(&decision(Amount::None), 7), 0);
}

#[test]
fn each_reason_has_its_cause() {
    let now = Nanos::from_millis(10);
    let before = |us: u64| Some(Nanos(now.0 - us * 1_000));
    let paired = |evidence| Pairing::Paired(Qpn::new(1), evidence);
    let cases = [
        (candidate(), None),
        (
            FlowCheck {
                trusted: false,
                ..candidate()
            },
            Some(Suppressed::Untrusted),
        ),
        (
            FlowCheck {
                pairing: Pairing::Cold,
                ..candidate()
            },
            Some(Suppressed::Cold),
        ),
        (
            FlowCheck {
                pairing: Pairing::Unpaired,
                ..candidate()
            },
            Some(Suppressed::Unpaired),
        ),
        (
            FlowCheck {
                pairing: paired(Evidence::Port),
                ..candidate()
            },
            Some(Suppressed::Unpaired),
        ),
        (
            FlowCheck {
                pairing: paired(Evidence::Psn),
                ..candidate()
            },
            None,
        ),
        (
            FlowCheck {
                signalled: before(59),
                ..candidate()
            },
            Some(Suppressed::Spacing),
        ),
        (
            FlowCheck {
                signalled: before(60),
                ..candidate()
            },
            None,
        ),
        (
            FlowCheck {
                passed: before(59),
                ..candidate()
            },
            Some(Suppressed::AlreadyNotified),
        ),
    ];
    let settings = Settings {
        evidence: Evidence::Psn,
        ..Settings::default()
    };
    for (candidate, reason) in cases {
        let answer = CnpCaps::check(&settings, &candidate, &decision(Amount::Many), now);
        assert_eq!(answer.err(), reason, "{candidate:?}");
    }
}

#[test]
fn a_port_carries_its_share_of_cnps_and_no_more() {
    // 5 % of 1 Gb/s is 6.25 MB/s: 63,775 CNPs of 98 wire bytes.
    let mut caps = new_caps(1_000_000_000, 1_000_000);
    let mut sent = 0u64;
    for us in 0..1_000_000 {
        let answer = caps.spend(PortId(0), false, Nanos::from_micros(us));
        sent += u64::from(answer.is_ok());
    }
    assert_eq!(
        caps.spend(PortId(0), false, Nanos::from_micros(999_999)),
        Err(Suppressed::CapPort)
    );
    assert_eq!(
        caps.spend(PortId(1), false, Nanos::from_micros(999_999)),
        Err(Suppressed::CapPort),
        "a port that is not listed"
    );
    let burst = 6_250 / 98 + 1;
    assert!((63_700..=63_775 + burst).contains(&sent), "{sent}");
}

#[test]
fn a_port_without_a_rate_has_no_cap() {
    let mut caps = new_caps(0, u64::MAX);
    for us in 0..100_000 {
        assert!(caps.spend(PortId(0), false, Nanos::from_micros(us)).is_ok());
    }
}

#[test]
fn a_cnp_that_did_not_leave_is_refunded() {
    let mut caps = new_caps(1, 0);
    for _ in 0..1_000 {
        assert!(caps.spend(PortId(0), false, Nanos::ZERO).is_ok());
        caps.refund(PortId(0), false);
    }
}

/// Law: a CNP that its port's cap refuses takes nothing from the CNPs a second of the others.
#[test]
fn a_port_at_its_cap_takes_nothing_from_the_others() {
    let settings = Settings {
        port_rates: vec![BitRate(1), BitRate(0)],
        cap_per_second: 100_000,
        ..Settings::default()
    };
    let mut caps = CnpCaps::new(&settings);
    let mut leave = |port: u8| {
        let answers = (0..1_000).map(|_| caps.spend(PortId(port), false, Nanos::ZERO).is_ok());
        answers.filter(|sent| *sent).count()
    };
    let few = leave(0);
    assert_eq!(few, 32 * 118 / 98, "its burst");
    assert_eq!(leave(1), 100 - few, "the rest of the switch's");
}

#[test]
fn names_are_unique_and_indices_follow() {
    let mut names: Vec<_> = Suppressed::ALL.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Suppressed::COUNT);
    assert!(
        Suppressed::ALL
            .iter()
            .enumerate()
            .all(|(at, reason)| reason.index() == at)
    );
}

/// Regression: every reload gave a full burst: 1,000 CNPs more each time.
#[test]
fn other_settings_give_no_fresh_burst_and_hold_at_once() {
    let with = |cap, per_second| Settings {
        cap,
        ..settings(100_000_000_000, per_second)
    };
    let at = Nanos::from_millis(1);
    let mut caps = CnpCaps::new(&with(50, 40_000));
    let leave = |caps: &mut CnpCaps, now| {
        let sent = std::iter::repeat_with(|| caps.spend(PortId(0), false, now));
        sent.take_while(Result::is_ok).count()
    };
    assert_eq!(leave(&mut caps, at), 40, "its burst");
    caps.reconfigure(&with(50, 40_000), at);
    assert_eq!(leave(&mut caps, at), 0);
    let at = at + Nanos::from_micros(500);
    caps.reconfigure(&with(50, 40_000), at);
    assert_eq!(leave(&mut caps, at), 20, "earned before");
    caps.reconfigure(&with(50, 1_000_000), at);
    assert_eq!(leave(&mut caps, at), 0);
    assert_eq!(leave(&mut caps, at + Nanos::from_micros(100)), 100);
    let later = at + Nanos::from_micros(100);
    caps.reconfigure(&with(1, 1_000_000), later);
    let cm = Settings {
        evidence: Evidence::Cm,
        ..Settings::default()
    };
    assert!(cm.believes(Evidence::Cm) && !cm.believes(Evidence::PortHash));
    // A thousandth of 100G is 12.5 MB/s: 127 CNPs of 98 bytes in a millisecond.
    assert_eq!(leave(&mut caps, at + Nanos::from_millis(10)), 127);
}
