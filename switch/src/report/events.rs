//! What an operator should know of lossless queues after the fact: a bounded log, made by comparing counters.
//!
//! Nothing here costs a worker anything: the management thread looks at the counters every few milliseconds. Storms bear the
//! worker's own time; what is only counted bears the time it was seen, and counts of one kind and port that come within a
//! second are one event.

use std::collections::VecDeque;
use std::fmt;
use std::time::SystemTime;

use npcc_pipeline::counters::PortCount;
use npcc_pipeline::units::Nanos;
use serde::{Deserialize, Serialize};

/// Events kept.
const KEPT: usize = 256;
/// Counts within this time are one event.
const TOGETHER: Nanos = Nanos::from_millis(1_000);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The watchdog found a storm.
    #[default]
    StormBegan,
    /// A storm ended.
    StormEnded,
    /// Lossless frames were lost for want of room.
    LosslessLost,
    /// A refresh went out after the peer's pause had run out.
    LateRefresh,
    /// The peer was paused because the worker fell behind the receive ring.
    CpuPause,
    /// A turn of a worker's loop was longer than headroom covers.
    SlowTurn,
    /// A port's link went down, or was taken down.
    LinkDown,
    /// A port's link came up, or has another speed.
    LinkUp,
    /// With the speed a link came up with, a lossless queue is marked only after its senders are paused.
    MarkingLate,
}

impl Kind {
    /// As JSON and the journal write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::StormBegan => "storm-began",
            Kind::StormEnded => "storm-ended",
            Kind::LosslessLost => "lossless-lost",
            Kind::LateRefresh => "late-refresh",
            Kind::CpuPause => "cpu-pause",
            Kind::SlowTurn => "slow-turn",
            Kind::LinkDown => "link-down",
            Kind::LinkUp => "link-up",
            Kind::MarkingLate => "marking-late",
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// When, in us of the switch's clock, as in the CNPs' log.
    pub time_us: u64,
    /// When it was taken down, RFC 3339.
    pub wall: String,
    /// What.
    pub kind: Kind,
    /// The port, where it is one port's.
    pub port: String,
    /// The priority, where it is one priority's.
    pub priority: Option<u8>,
    /// How many; of a slow turn: its length in us; of a link that came up: its speed in Mb/s.
    pub count: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event {
            time_us,
            port,
            count,
            ..
        } = self;
        let priority = self.priority.unwrap_or_default();
        write!(f, "{time_us} us: ")?;
        if !self.wall.is_empty() {
            write!(f, "{} ", self.wall)?;
        }
        match self.kind {
            Kind::StormBegan => write!(
                f,
                "{port}: the peer pauses priority {priority} without end: storm"
            ),
            Kind::StormEnded => write!(f, "{port}: the storm on priority {priority} is over"),
            Kind::LosslessLost => {
                write!(f, "{port}: {count} lossless frames lost for want of room")
            }
            Kind::LateRefresh => write!(
                f,
                "{port}: {count} refreshes later than the peer's pause lasted"
            ),
            Kind::CpuPause => write!(
                f,
                "{port}: peer paused {count} times, the worker fell behind the receive ring"
            ),
            Kind::SlowTurn => write!(
                f,
                "a turn of a worker's loop took {count} us, more than headroom covers"
            ),
            Kind::LinkDown => write!(f, "{port}: link down"),
            Kind::MarkingLate => write!(
                f,
                "{port}: at this speed senders are paused before they are marked: lower kmax or raise buffer.pool"
            ),
            Kind::LinkUp => write!(f, "{port}: link up, {count} Mb/s"),
        }
    }
}

/// Tells whoever runs the switch.
fn tell(event: &Event) {
    let (port, count) = (event.port.as_str(), event.count);
    let priority = event.priority.map(u64::from);
    let kind = event.kind.name();
    // Fields that are absent are left out.
    if matches!(event.kind, Kind::StormEnded | Kind::LinkUp) {
        tracing::info!(kind, port, priority, count, "{event}");
    } else {
        tracing::warn!(kind, port, priority, count, "{event}");
    }
}

/// The log.
#[derive(Debug, Default)]
pub struct Events {
    /// What each port's counters said at the last look.
    seen: Vec<PortCount>,
    slowest: u64,
    log: VecDeque<Event>,
}

impl Events {
    /// Looks at port number `index`, whose counters over all workers say `counts`.
    pub fn look(&mut self, (index, name): (usize, &str), counts: PortCount, now: Nanos) {
        if self.seen.len() <= index {
            self.seen.resize_with(index + 1, PortCount::default);
        }
        let Some(seen) = self.seen.get_mut(index) else {
            return;
        };
        let mut new = counts.clone();
        new.since(&std::mem::replace(seen, counts));
        let mut found = Vec::new();
        for (n, pause) in (0u8..).zip(&new.flow.priorities) {
            let storms = [
                (Kind::StormBegan, pause.storms, pause.storm_at),
                (Kind::StormEnded, pause.storms_ended, pause.storm_ended_at),
            ];
            found.extend(storms.map(|(kind, count, at)| (kind, Some(n), count, Nanos(at))));
        }
        found.extend([
            (Kind::LosslessLost, None, new.lossless_lost, now),
            (Kind::LateRefresh, None, new.flow.late, now),
            (Kind::CpuPause, None, new.flow.xoff_cpu, now),
        ]);
        found.retain(|(_, _, count, _)| *count > 0);
        // One poll may find an end and a beginning: in the order they came.
        found.sort_by_key(|(_, _, _, time)| *time);
        for (kind, priority, count, time) in found {
            self.add(Event {
                time_us: time.0 / 1_000,
                kind,
                port: name.to_owned(),
                priority,
                count,
                ..Event::default()
            });
        }
    }

    /// Looks at the longest turn of all workers, `turn`; headroom covers `covered`.
    pub fn turn(&mut self, turn: Nanos, covered: Nanos, now: Nanos) {
        // After `clear watermarks` the next slow one is news again.
        self.slowest = self.slowest.min(turn.0);
        if turn > covered && turn.0 > self.slowest {
            self.slowest = turn.0;
            self.add(Event {
                time_us: now.0 / 1_000,
                kind: Kind::SlowTurn,
                count: turn.0 / 1_000,
                ..Event::default()
            });
        }
    }

    /// The link of a port changed; `mbps` is its speed.
    pub fn link(&mut self, name: &str, kind: Kind, mbps: u64, now: Nanos) {
        self.add(Event {
            time_us: now.0 / 1_000,
            kind,
            port: name.to_owned(),
            count: mbps,
            ..Event::default()
        });
    }

    fn add(&mut self, event: Event) {
        let event = Event {
            wall: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            ..event
        };
        let counted = matches!(
            event.kind,
            Kind::LosslessLost | Kind::LateRefresh | Kind::CpuPause | Kind::SlowTurn
        );
        let same = self.log.iter_mut().rev().find(|earlier| {
            (earlier.kind, &earlier.port, earlier.priority)
                == (event.kind, &event.port, event.priority)
        });
        if counted
            && let Some(same) = same
            && event.time_us.saturating_sub(same.time_us) < TOGETHER.0 / 1_000
        {
            if event.kind == Kind::SlowTurn {
                same.count = event.count;
            } else {
                same.count += event.count;
            }
            return;
        }
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        tell(&event);
        self.log.push_back(event);
    }

    /// The latest events, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        self.log.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::counters::{PortCounters, sum};

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn storms_bear_the_workers_time_and_counts_of_a_second_are_one() {
        let port = PortCounters::default();
        let mut events = Events::default();
        let look = |events: &mut Events, now| {
            events.look((1, "wan0"), sum([&port]), now);
        };
        look(&mut events, ms(1));
        assert!(events.all().is_empty());
        let pause = &port.flow.priorities[3];
        pause.storms.add(1);
        pause.storm_at.set(ms(5).0);
        port.lossless_lost.add(7);
        look(&mut events, ms(10));
        port.lossless_lost.add(3);
        look(&mut events, ms(500));
        pause.storms_ended.add(1);
        pause.storm_ended_at.set(ms(600).0);
        port.lossless_lost.add(1);
        look(&mut events, ms(1_700));
        let told: Vec<_> = events
            .all()
            .into_iter()
            .map(|event| (event.kind, event.priority, event.count, event.time_us))
            .collect();
        assert_eq!(
            told,
            [
                (Kind::StormBegan, Some(3), 1, 5_000),
                (Kind::LosslessLost, None, 10, 10_000),
                (Kind::StormEnded, Some(3), 1, 600_000),
                (Kind::LosslessLost, None, 1, 1_700_000),
            ]
        );
        assert!(
            events.all()[0]
                .to_string()
                .contains("wan0: the peer pauses priority 3")
        );
    }

    #[test]
    fn a_slow_turn_is_told_when_it_is_slower_than_ever_or_since_cleared() {
        let mut events = Events::default();
        events.turn(Nanos(40_000), Nanos(50_000), ms(1));
        assert!(events.all().is_empty());
        events.turn(Nanos(300_000), Nanos(50_000), ms(2));
        events.turn(Nanos(300_000), Nanos(50_000), ms(2_000));
        assert_eq!(events.all().len(), 1);
        events.turn(Nanos(1_000), Nanos(50_000), ms(3_000));
        events.turn(Nanos(200_000), Nanos(50_000), ms(4_000));
        let counts: Vec<u64> = events.all().iter().map(|event| event.count).collect();
        assert_eq!(counts, [300, 200]);
    }

    #[test]
    fn the_log_is_bounded() {
        let mut events = Events::default();
        let port = PortCounters::default();
        for n in 1..1_000 {
            port.flow.late.add(1);
            events.look((0, "dc0"), sum([&port]), ms(2_000 * n));
        }
        assert_eq!(events.all().len(), KEPT);
        assert_eq!(events.all()[KEPT - 1].time_us, 1_998_000_000);
    }
}
