use super::*;
use crate::action::HostSet;
use crate::control::tests::{data, warm};
use crate::host_rules::HostRules;
use crate::policy::{PolicyName, Reason};
use crate::responsiveness::{HostVerdict, Responsiveness, Unmeasured};
use crate::traffic_tests::rig::{Rig, config};

const TICK: Nanos = Nanos::from_micros(20);
/// Ticks between two frames of a sender of 15 Mb/s.
const EVERY: u64 = 29;

/// A sender of 15 Mb/s in a queue that stands above every set-point: a deaf one, or one that stops for a millisecond after each CNP.
fn signalled(
    seconds: u64,
    obeys: bool,
    change: impl Fn(&mut HostRules),
) -> (Rig, Option<HostVerdict>, u64) {
    let mut config = config(TICK);
    config.settings.queues[0].policy = PolicyName::Model.defaults();
    config.settings.hosts = HostRules::default();
    config.settings.earned = 16 << 10;
    change(&mut config.settings.hosts);
    let mut rig = warm(1, &config);
    let verdict = |rig: &Rig| rig.core.status().verdicts.hosts().next();
    let mut stopped = 0;
    for tick in 0..seconds * 50_000 {
        if tick % EVERY == 0 && tick >= stopped {
            rig.out(&data(0x1_0018, 0x11));
        }
        if rig.tick(TICK, 5_000_000) > 0 && obeys {
            stopped = tick + 50;
        }
        let is_known = |host: HostVerdict| host.responsiveness == Responsiveness::Unresponsive;
        if verdict(&rig).is_some_and(is_known) {
            let host = verdict(&rig);
            return (rig, host, tick / 50);
        }
    }
    let host = verdict(&rig);
    (rig, host, seconds * 1_000)
}

/// Law: a host of 15 Mb/s that ignores CNPs is known within ten seconds, after five failed trials, and its flow pays 2 KiB for every CNP but those
/// of one trial.
#[test]
fn a_deaf_host_of_fifteen_megabits_is_known_within_ten_seconds() {
    let (rig, host, ms) = signalled(10, false, |_| {});
    let host = host.unwrap();
    assert_eq!(
        (host.responsiveness, host.failed),
        (Responsiveness::Unresponsive, 5)
    );
    assert_eq!((host.passed, host.unmeasured), (0, [0; Unmeasured::COUNT]));
    assert!((4_000..10_000).contains(&ms), "{ms} ms");
    let flow = rig.core.tracker.flows.get(0).unwrap();
    assert!(
        flow.cnps <= flow.bytes / 2_048 + 1_300,
        "{} of {} bytes",
        flow.cnps,
        flow.bytes
    );
    let status = rig.core.status();
    let trials = status.queues()[0].reason(Reason::Trial).get();
    assert!((6_000..6_400).contains(&trials), "{trials}");
}

/// Law: a host that obeys passes its first trial and has no second within ten seconds; one that the operator lists has none.
#[test]
fn an_obedient_host_has_one_trial_in_ten_seconds_and_a_listed_one_none() {
    let (_, host, _) = signalled(8, true, |_| {});
    let host = host.unwrap();
    assert_eq!(
        (host.responsiveness, host.passed, host.failed),
        (Responsiveness::Responsive, 1, 0)
    );
    let (_, host, _) = signalled(2, false, |hosts| *hosts = HostRules::all_answer());
    let host = host.unwrap();
    assert_eq!(
        (host.responsiveness, host.passed, host.failed),
        (Responsiveness::Responsive, 0, 0)
    );
}

/// Law: no trial is made by CNPs so far apart that a card that obeys keeps its rate.
#[test]
fn no_host_has_a_trial_where_cnps_are_a_millisecond_apart() {
    let every = vec![(HostSet::all(), Nanos::from_millis(1))];
    let (_, host, _) = signalled(2, false, |hosts| hosts.cnp_intervals = every.clone());
    let host = host.unwrap();
    let refused = host.unmeasured[Unmeasured::Refused.index()];
    assert!(host.failed == 0 && refused > 0, "{host:?}");
}

/// Law: an unresponsive host that begins to obey passes the trial it is put to then, and is signalled again.
#[test]
fn an_unresponsive_host_that_obeys_is_signalled_again() {
    let (mut rig, _, _) = signalled(10, false, |_| {});
    let mut stopped = 0;
    for tick in 0..400_000 {
        if tick % EVERY == 0 && tick >= stopped {
            rig.out(&data(0x1_0018, 0x11));
        }
        if rig.tick(TICK, 5_000_000) > 0 {
            stopped = tick + 50;
        }
    }
    let host = rig.core.status().verdicts.hosts().next().unwrap();
    assert_eq!(
        (host.responsiveness, host.passed),
        (Responsiveness::Responsive, 1)
    );
}
