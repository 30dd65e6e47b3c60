//! Events of ports and lossless queues, found by comparing counters.
//!
//! No worker pays for this: the management thread reads the counters every few milliseconds. Storms have the worker's own time; an event
//! that is only counted has the time at which the count was read.
//!

use std::collections::HashSet;
use std::net::IpAddr;

use npcc_api::events::{Event, Kind};
use npcc_cnp::responsiveness::{HostVerdict, Responsiveness};
use npcc_pipeline::counters::PortCount;
use npcc_pipeline::units::Nanos;

/// Logs an event, at level info if it is good news and at level warn otherwise.
pub fn log(event: &Event) {
    let (port, count) = (event.port.as_str(), event.count);
    let priority = event.priority.map(u64::from);
    let kind = event.kind.name();
    // Fields that are absent are left out.
    if matches!(
        event.kind,
        Kind::StormEnded | Kind::LinkUp | Kind::HostAnswers | Kind::HostMovedBack
    ) {
        tracing::info!(kind, port, priority, count, "{event}");
    } else {
        tracing::warn!(kind, port, priority, count, "{event}");
    }
}

/// Finds events by comparing the counters with those of the last poll.
#[derive(Debug, Default)]
pub struct Watch {
    /// Counters of each port at the last poll.
    seen: Vec<PortCount>,
    slowest: u64,
    /// Changes of verdicts on hosts until the last poll, and the hosts that were unresponsive or moved then.
    verdicts: u64,
    unresponsive: HashSet<IpAddr>,
    moved: HashSet<IpAddr>,
}

impl Watch {
    /// Returns the events of hosts that became unresponsive, or answer again, since the last poll. `changes` is the number of such changes until now.
    pub fn hosts(
        &mut self,
        changes: u64,
        hosts: impl Iterator<Item = HostVerdict>,
        now: Nanos,
    ) -> Vec<Event> {
        if changes == std::mem::replace(&mut self.verdicts, changes) {
            return Vec::new();
        }
        let event = |kind, host, count: u32| Event {
            time_us: now.0 / 1_000,
            kind,
            host: Some(host),
            count: count.into(),
            ..Event::default()
        };
        let mut found = Vec::new();
        for host in hosts {
            let is_moved = host.responsiveness == Responsiveness::Moved;
            if is_moved && self.moved.insert(host.address) {
                found.push(event(Kind::HostMoved, host.address, host.failed));
            } else if !is_moved && self.moved.remove(&host.address) {
                found.push(event(Kind::HostMovedBack, host.address, host.failed));
            }
            match host.responsiveness {
                Responsiveness::Unresponsive if self.unresponsive.insert(host.address) => {
                    found.push(event(Kind::HostUnresponsive, host.address, host.failed));
                }
                Responsiveness::Responsive if self.unresponsive.remove(&host.address) => {
                    found.push(event(Kind::HostAnswers, host.address, host.passed));
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the events of port number `index` since the last poll; `counts` are its counters over all workers.
    pub fn port(
        &mut self,
        (index, name): (usize, &str),
        counts: PortCount,
        now: Nanos,
    ) -> impl Iterator<Item = Event> {
        if self.seen.len() <= index {
            self.seen.resize_with(index + 1, PortCount::default);
        }
        let mut new = counts.clone();
        if let Some(seen) = self.seen.get_mut(index) {
            new.since(&std::mem::replace(seen, counts));
        }
        let mut found = Vec::new();
        for (n, pause) in (0u8..).zip(&new.flow.priorities) {
            let storms = [
                (Kind::StormBegan, pause.storms, pause.storm_at),
                (Kind::StormEnded, pause.storms_ended, pause.storm_ended_at),
                (
                    Kind::StormWarning,
                    pause.storm_warnings,
                    pause.storm_warned_at,
                ),
            ];
            found.extend(storms.map(|(kind, count, at)| (kind, Some(n), count, Nanos(at))));
        }
        found.extend([
            (Kind::LosslessLost, None, new.lossless_lost, now),
            (Kind::LateRefresh, None, new.flow.late, now),
            (Kind::CpuPause, None, new.flow.xoff_cpu, now),
            (Kind::TxStalled, None, new.flow.tx_stalled, now),
        ]);
        found.retain(|(_, _, count, _)| *count > 0);
        // One poll may find an end and a beginning: they are sorted by time.
        found.sort_by_key(|(_, _, _, time)| *time);
        let event = move |(kind, priority, count, time): (Kind, Option<u8>, u64, Nanos)| Event {
            time_us: time.0 / 1_000,
            kind,
            port: name.to_owned(),
            priority,
            count,
            ..Event::default()
        };
        found.into_iter().map(event)
    }

    /// Returns an event if `turn`, the longest turn of all workers, is longer than headroom covers (`covered`; `None` where there is no
    /// headroom) and half as long again as the last that was one.
    pub fn turn(&mut self, turn: Nanos, covered: Option<Nanos>, now: Nanos) -> Option<Event> {
        // After `clear watermarks` the next slow turn is an event again.
        if turn.0 < self.slowest {
            self.slowest = 0;
        }
        let is_news = covered.is_some_and(|covered| turn > covered)
            && turn.0 >= self.slowest.saturating_add(self.slowest / 2).max(1);
        is_news.then(|| {
            self.slowest = turn.0;
            Event {
                time_us: now.0 / 1_000,
                kind: Kind::SlowTurn,
                count: turn.0 / 1_000,
                ..Event::default()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::journal::Journal;
    use npcc_pipeline::counters::{PortCounters, sum};

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn storms_bear_the_workers_time_and_counts_of_a_second_are_one() {
        let port = PortCounters::default();
        let (mut watch, mut journal) = (Watch::default(), Journal::default());
        let mut look = |journal: &mut Journal, now| {
            let found = watch.port((1, "wan0"), sum([&port]), now);
            found.for_each(|event| _ = journal.event(event));
        };
        look(&mut journal, ms(1));
        assert!(journal.events().is_empty());
        let pause = &port.flow.priorities[3];
        pause.storm_warnings.add(1);
        pause.storm_warned_at.set(ms(4).0);
        pause.storms.add(1);
        pause.storm_at.set(ms(5).0);
        port.lossless_lost.add(7);
        look(&mut journal, ms(10));
        port.lossless_lost.add(3);
        look(&mut journal, ms(500));
        pause.storms_ended.add(1);
        pause.storm_ended_at.set(ms(600).0);
        port.lossless_lost.add(1);
        assert_eq!(journal.due(ms(1_009)), []);
        assert_eq!(
            journal.due(ms(1_010)).len(),
            1,
            "each count is logged as it is shown"
        );
        look(&mut journal, ms(1_700));
        assert_eq!(journal.due(ms(2_010)).len(), 1);
        let reported: Vec<_> = journal
            .events()
            .into_iter()
            .map(|event| (event.kind, event.priority, event.count, event.time_us))
            .collect();
        assert_eq!(
            reported,
            [
                (Kind::StormWarning, Some(3), 1, 4_000),
                (Kind::StormBegan, Some(3), 1, 5_000),
                (Kind::LosslessLost, None, 7, 10_000),
                (Kind::LosslessLost, None, 3, 500_000),
                (Kind::StormEnded, Some(3), 1, 600_000),
                (Kind::LosslessLost, None, 1, 1_700_000),
            ]
        );
        assert!(
            journal.events()[1]
                .to_string()
                .contains("wan0: the peer pauses priority 3")
        );
    }

    #[test]
    fn each_count_of_a_port_is_an_event_of_its_kind_with_its_text() {
        let port = PortCounters::default();
        let pause = &port.flow.priorities[5];
        pause.storm_warnings.add(1);
        pause.storm_warned_at.set(ms(2).0);
        port.flow.late.add(2);
        port.flow.xoff_cpu.add(3);
        let mut watch = Watch::default();
        let found = watch.port((0, "wan0"), sum([&port]), ms(9));
        let found: Vec<_> = found
            .map(|event| (event.kind.name(), event.to_string()))
            .collect();
        let texts = [
            (
                "storm-warning",
                "2000 us: wan0: the peer pauses priority 5 for half of the time with frames waiting: short of a storm",
            ),
            (
                "late-refresh",
                "9000 us: wan0: 2 refreshes later than the peer's pause lasted",
            ),
            (
                "cpu-pause",
                "9000 us: wan0: peer paused 3 times, the worker fell behind the receive ring",
            ),
        ];
        assert_eq!(found, texts.map(|(kind, text)| (kind, text.to_owned())));
    }

    #[test]
    fn a_device_that_takes_no_frame_is_an_event_that_says_for_how_long() {
        let port = PortCounters::default();
        let mut watch = Watch::default();
        let mut texts = |stalled, at| {
            port.flow.tx_stalled.add(stalled);
            let found = watch.port((0, "wan0"), sum([&port]), ms(at));
            found.map(|event| event.to_string()).collect::<Vec<_>>()
        };
        assert!(texts(0, 1).is_empty());
        let found = texts(3, 10);
        assert!(
            found[0].contains("wan0: the device took no frame for 30 ms"),
            "{found:?}"
        );
        assert!(texts(0, 20).is_empty());
    }

    #[test]
    fn a_turn_slower_than_ever_or_since_watermarks_were_cleared_is_an_event() {
        let mut watch = Watch::default();
        let turns = [
            (40, 1),
            (300, 2),
            (310, 2_000),
            (450, 2_001),
            (1, 3_000),
            (200, 4_000),
        ];
        let mut news = |covered| {
            turns.map(|(us, at)| {
                let event = watch.turn(Nanos(us * 1_000), covered, ms(at));
                event.map(|event| event.count)
            })
        };
        let covered = Some(Nanos(50_000));
        assert_eq!(
            news(covered),
            [None, Some(300), None, Some(450), None, Some(200)]
        );
        assert_eq!(news(None), [None; 6], "no headroom, no alarm");
    }

    /// Law: an event is shown with the value with which it was logged.
    #[test]
    fn an_event_keeps_the_value_with_which_it_was_logged() {
        let (mut watch, mut journal) = (Watch::default(), Journal::default());
        let mut logged = Vec::new();
        for (us, at) in [(113, 1), (1_300, 2), (1_400, 3), (9_000, 4)] {
            let event = watch.turn(Nanos(us * 1_000), Some(Nanos(50_000)), ms(at));
            logged.extend(event.and_then(|event| journal.event(event)));
        }
        let lost = |count, at| Event {
            time_us: at * 1_000,
            kind: Kind::LosslessLost,
            count,
            ..Event::default()
        };
        for at in 10..2_000 {
            logged.extend(journal.event(lost(1, at)));
            logged.extend(journal.due(ms(at)));
        }
        assert_eq!(journal.events(), logged);
        assert_eq!(logged.len(), 3 + 3);
    }

    /// Law: a verdict on a host is one event when it comes and one when it is taken back.
    #[test]
    fn a_host_that_ignores_cnps_is_an_event_and_so_is_its_answer() {
        let mut watch = Watch::default();
        let mut found = |changes, responsiveness, passed| {
            let host = HostVerdict {
                address: "10.0.1.3".parse().unwrap(),
                responsiveness,
                passed,
                failed: 5,
                failing_since: ms(1),
                unmeasured: [0; 5],
            };
            let events = watch.hosts(changes, [host].into_iter(), ms(7)).into_iter();
            events.map(|event| event.to_string()).collect::<Vec<_>>()
        };
        assert!(found(0, Responsiveness::Unknown, 0).is_empty());
        assert_eq!(
            found(1, Responsiveness::Unresponsive, 0),
            ["7000 us: 10.0.1.3: ignores CNPs, 5 trials failed: see `show hosts`"]
        );
        assert!(found(1, Responsiveness::Unresponsive, 0).is_empty());
        for (changes, class, text) in [
            (2, Responsiveness::Moved, "ignores CNPs for ten seconds"),
            (3, Responsiveness::Unresponsive, "in their own queue again"),
        ] {
            let events = found(changes, class, 0);
            assert!(events.len() == 1 && events[0].contains(text), "{events:?}");
        }
        assert_eq!(
            found(4, Responsiveness::Responsive, 1),
            ["7000 us: 10.0.1.3: answers CNPs again"]
        );
        assert!(found(4, Responsiveness::Responsive, 1).is_empty());
    }
}
