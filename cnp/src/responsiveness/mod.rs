//! Responsiveness of hosts to CNPs, by trials.
//!
//! A host that takes a quarter more than the average host of its queue, and is signalled for it for [`SUSPECTED`] without a pause, is put to a trial ([`trial`]): one of its flows gets CNPs so close that every known
//! card is at its lowest rate after 15 ms, and its bytes are counted then. A flow that still sends three quarters of what it sent before fails the trial; one that sends less than half passes. A host that fails
//! [`FAILURES`] trials, with none passed between them, is unresponsive until it passes one.
//!
//! A single CNP tells little: alpha has faded, the rate of the sender was above that of its application, or the CNP was lost. A verdict from
//! likelihoods of rates after each CNP needed three kinds of cards and 1,100 lines, judged hosts wrongly that obey, and met no more cells of the
//! acceptance than none (docs/evidence.md).
//!
//! Laws: no verdict follows from fewer than [`FAILURES`] observations. A trial without a result moves nothing, and is counted by its reason. The operator's word
//! (`npcc.hosts.answering`) spares a host all trials.

pub(crate) mod trial;
mod view;

use npcc_pipeline::moved_hosts::MovedHosts;
use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use npcc_roce::fixed_map::FixedMap;
use npcc_roce::key::{Bits, FlowKey};
pub use view::{HostVerdict, HostVerdictView};

/// Capacity of the table of hosts; the one not signalled for longest is replaced.
const HOSTS: usize = 4_096;
/// Time for which a host must have been signalled before its first trial.
const SUSPECTED: Nanos = Nanos::from_millis(500);
/// Time over which the bytes of hosts are compared, and longest pause between two CNPs to a host that is signalled all the time.
const PERIOD: Nanos = Nanos::from_millis(100);
/// Number of failed trials in a row from which a host is unresponsive.
const FAILURES: u32 = 5;
/// Time from the end of a trial that was failed, or without a result, to the next.
const AGAIN: Nanos = Nanos::from_millis(200);
/// Time for which the first failure must be past for the host to be moved, and after which its trials become rare.
const CERTAIN: Nanos = Nanos::from_millis(10_000);
/// Limits of the time for which a host is moved, doubled by each move.
const MOVED: (Nanos, Nanos) = (Nanos::from_millis(60_000), Nanos::from_millis(3_600_000));
/// Limits of the time from a passed trial to the next, doubled by each: a trial costs the host about 25 ms.
const TRUST: (Nanos, Nanos) = (Nanos::from_millis(10_000), Nanos::from_millis(3_600_000));

named! {
    /// Responsiveness of a host to CNPs.
    #[derive(Default)]
    pub enum Responsiveness {
        /// No trial has said: it was not signalled for long, or its trials had no result.
        #[default]
        Unknown = "unknown",
        /// It failed its latest trials: its flows get the CNPs of no policy.
        Unresponsive = "unresponsive",
        /// It is unresponsive, and its frames are in the queue for such hosts.
        Moved = "moved",
        /// It passed its latest trial, or the operator says so.
        Responsive = "answers",
    }
}

impl Responsiveness {
    /// Returns true if the host is unresponsive.
    pub(crate) const fn is_unresponsive(self) -> bool {
        matches!(self, Responsiveness::Unresponsive | Responsiveness::Moved)
    }
}

named! {
    /// Reason why a trial says nothing about a host.
    pub enum Unmeasured {
        /// The control core was late: the CNPs were too far apart.
        Late = "late",
        /// We paused the senders behind its port.
        Paused = "paused",
        /// The flow sent too little to be measured.
        TooSlow = "too-slow",
        /// A CNP could not be sent: its queue pair is not known, or a limit was reached.
        Refused = "refused",
        /// The flow slowed down, but by less than half: its card has a lowest rate.
        Weak = "weak",
    }
}

/// Result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The flow slowed down to less than half.
    Passed,
    /// It sends three quarters of its rate or more.
    Failed,
    Unmeasured(Unmeasured),
}

/// Responsiveness state of one host.
#[derive(Debug, Clone, Copy, Default)]
struct HostState {
    /// True if the operator says that it answers.
    is_listed: bool,
    /// Times of the first and the latest CNP of those with no longer pause than [`PERIOD`].
    signalled: Option<(Nanos, Nanos)>,
    /// Earliest time of the next trial.
    next: Nanos,
    /// Time from the latest passed trial to the next; zero before.
    trust: Nanos,
    /// Number of trials failed since one was passed, and time of the first of these.
    failed: u32,
    failing_since: Nanos,
    /// Number of trials passed and failed.
    passed: u32,
    ineffective: u32,
    /// Number of trials without a result, by reason.
    unmeasured: [u32; Unmeasured::COUNT],
    /// Bytes that its flows put into congested queues, as sampled in the period of this number, and in the last before it with any.
    sum: (u64, u64),
    last: (u64, u64),
    /// Time at which it is moved back, and the time for which it was moved last.
    moved_until: Option<Nanos>,
    moved_for: Nanos,
}

impl HostState {
    const fn responsiveness(&self) -> Responsiveness {
        if self.moved_until.is_some() {
            Responsiveness::Moved
        } else if self.failed >= FAILURES {
            Responsiveness::Unresponsive
        } else if self.is_listed || self.passed > 0 && self.failed == 0 {
            Responsiveness::Responsive
        } else {
            Responsiveness::Unknown
        }
    }

    /// Records that the host is signalled, or would be if it were not unresponsive; returns true if a trial is due.
    fn note_signalled(&mut self, times: Times, now: Nanos) -> bool {
        let fresh = |(_, last): &(Nanos, Nanos)| now.since(*last) <= PERIOD;
        let since = self.signalled.filter(fresh).map_or(now, |(since, _)| since);
        self.signalled = Some((since, now));
        // A host that failed its latest trial is suspected already.
        let is_suspected = self.failed > 0 || now.since(since) >= times.suspected;
        !self.is_listed && now >= self.next && is_suspected
    }

    /// Returns true if it failed every trial for [`CERTAIN`].
    fn is_certain(&self, now: Nanos) -> bool {
        self.failed >= FAILURES && now.since(self.failing_since) >= CERTAIN
    }

    fn learn(&mut self, outcome: Outcome, times: Times, now: Nanos) {
        let mut pause = times.again;
        match outcome {
            Outcome::Passed => {
                self.passed = self.passed.saturating_add(1);
                self.failed = 0;
                let doubled = Nanos(self.trust.0.saturating_mul(2));
                self.trust = doubled.max(TRUST.0).min(TRUST.1);
                pause = self.trust;
            }
            Outcome::Failed => {
                if self.failed == 0 {
                    self.failing_since = now;
                }
                self.failed = self.failed.saturating_add(1);
                self.ineffective = self.ineffective.saturating_add(1);
                self.trust = Nanos::ZERO;
                if self.is_certain(now) {
                    pause = TRUST.0;
                }
            }
            Outcome::Unmeasured(reason) => {
                if let Some(count) = self.unmeasured.get_mut(reason.index()) {
                    *count = count.saturating_add(1);
                }
            }
        }
        self.next = now + pause;
    }
}

/// Table of hosts' responsiveness: the control core's side.
#[derive(Debug)]
pub(crate) struct HostVerdicts {
    map: FixedMap<(Bits, bool), HostState>,
    times: Times,
    /// Present period, and the one before.
    period: Period,
    last: Period,
    /// Earliest time at which a moved host is moved back.
    next_back: Nanos,
}

/// Hosts that contributed to congested queues in a period, and the bytes of all of them.
#[derive(Debug, Clone, Copy, Default)]
struct Period {
    /// Number of periods until this one.
    number: u64,
    began: Nanos,
    hosts: u64,
    bytes: u64,
}

/// Times between trials.
#[derive(Debug, Clone, Copy)]
struct Times {
    suspected: Nanos,
    again: Nanos,
}

impl Times {
    const DEFAULT: Times = Times {
        suspected: SUSPECTED,
        again: AGAIN,
    };
}

impl HostVerdicts {
    pub(crate) fn new(seed: u64) -> HostVerdicts {
        HostVerdicts {
            map: FixedMap::new(HOSTS, seed),
            times: Times::DEFAULT,
            period: Period {
                number: 2,
                ..Period::default()
            },
            last: Period::default(),
            next_back: Nanos(u64::MAX),
        }
    }

    /// Makes every host that is signalled due for a trial at once.
    pub(crate) const fn try_at_once(&mut self) {
        self.times = Times {
            suspected: Nanos::ZERO,
            again: Nanos::ZERO,
        };
    }

    /// Responsiveness of the sender of `flow`; `place` is the last result of [`HostVerdicts::remember`].
    pub(crate) fn responsiveness(&self, flow: &FlowKey, place: u32) -> Responsiveness {
        if self.map.key(place) != Some(host(flow)) {
            return Responsiveness::Unknown;
        }
        let state = self.map.get(place);
        state.map_or(Responsiveness::Unknown, HostState::responsiveness)
    }

    /// Makes or keeps an entry for the sender of `flow`; returns its place. `is_listed`: the operator says that it answers.
    pub(crate) fn remember(
        &mut self,
        flow: &FlowKey,
        place: u32,
        is_listed: impl Fn() -> bool,
        view: &HostVerdictView,
    ) -> u32 {
        let host = host(flow);
        let known = (self.map.key(place) == Some(host)).then_some(place);
        if let Some(found) = known.or_else(|| self.map.find(&host)) {
            self.map.touch(found);
            return found;
        }
        if self.map.is_full()
            && let Some(oldest) = self.map.oldest(0)
        {
            self.map.remove(oldest);
            view.forget(oldest);
        }
        let state = HostState {
            is_listed: is_listed(),
            ..HostState::default()
        };
        let Some(place) = self.map.insert(host, state) else {
            return u32::MAX;
        };
        if state.is_listed {
            view.show(place, host, &state);
        }
        place
    }

    /// Adds the bytes that a contributor of the host at `place` put into its queue in a window.
    pub(crate) fn add(&mut self, place: u32, bytes: u64, now: Nanos) {
        let Some(state) = self.map.get_mut(place) else {
            return;
        };
        if now.since(self.period.began) >= PERIOD {
            self.last = self.period;
            self.period = Period {
                number: self.last.number + 1,
                began: now,
                hosts: 0,
                bytes: 0,
            };
        }
        if state.sum.0 != self.period.number {
            state.last = state.sum;
            state.sum = (self.period.number, 0);
            self.period.hosts += 1;
        }
        state.sum.1 = state.sum.1.saturating_add(bytes);
        self.period.bytes = self.period.bytes.saturating_add(bytes);
    }

    /// Records that the host at `place` is signalled; returns true if a trial is due. Only a host that took a quarter more than the average one in the
    /// period before is ever put to a trial: another may be held at the lowest rate of its card.
    pub(crate) fn note_signalled(&mut self, place: u32, now: Nanos) -> bool {
        let Some(state) = self.map.get_mut(place) else {
            return false;
        };
        let (number, bytes) = state.last;
        let takes_more = self.last.hosts == 1
            || bytes.saturating_mul(self.last.hosts) / 5 >= self.last.bytes / 4;
        let is_heavy =
            number == self.last.number && takes_more || self.times.suspected == Nanos::ZERO;
        let is_judged = state.responsiveness().is_unresponsive();
        (is_heavy || is_judged) && state.note_signalled(self.times, now)
    }

    /// Takes the outcome of a trial of the sender of `flow`.
    pub(crate) fn learn(
        &mut self,
        flow: &FlowKey,
        outcome: Outcome,
        now: Nanos,
        view: &HostVerdictView,
    ) {
        let host = host(flow);
        let place = self.map.find(&host).unwrap_or(u32::MAX);
        if let Some(state) = self.map.get_mut(place) {
            let before = state.responsiveness().is_unresponsive();
            state.learn(outcome, self.times, now);
            view.show(place, host, state);
            if before != state.responsiveness().is_unresponsive() {
                view.changed();
            }
        }
    }

    /// Moves the sender of `flow`, if it failed every trial for ten seconds and there is room.
    pub(crate) fn move_certain(
        &mut self,
        flow: &FlowKey,
        moved: &MovedHosts,
        now: Nanos,
        view: &HostVerdictView,
    ) {
        let host = host(flow);
        let place = self.map.find(&host).unwrap_or(u32::MAX);
        let state = self.map.get_mut(place);
        let Some(state) =
            state.filter(|state| state.is_certain(now) && state.moved_until.is_none())
        else {
            return;
        };
        if !moved.add(flow.sender()) {
            return;
        }
        let doubled = Nanos(state.moved_for.0.saturating_mul(2));
        state.moved_for = doubled.max(MOVED.0).min(MOVED.1);
        state.moved_until = Some(now + state.moved_for);
        view.show(place, host, state);
        view.changed();
        self.next_back = self.next_back.min(now + state.moved_for);
        self.set_share(moved);
    }

    /// Moves hosts back whose time is over: they have to fail their trials for ten seconds again.
    pub(crate) fn move_back(&mut self, moved: &MovedHosts, now: Nanos, view: &HostVerdictView) {
        if now < self.next_back {
            return;
        }
        self.next_back = Nanos(u64::MAX);
        for known in moved.hosts() {
            let host = (known.words(), known.is_v6());
            let place = self.map.find(&host).unwrap_or(u32::MAX);
            let Some(state) = self.map.get_mut(place) else {
                moved.remove(known);
                continue;
            };
            match state.moved_until {
                Some(until) if until > now => self.next_back = self.next_back.min(until),
                _ => {
                    moved.remove(known);
                    (state.moved_until, state.failing_since) = (None, now);
                    state.next = now;
                    view.show(place, host, state);
                    view.changed();
                }
            }
        }
        self.set_share(moved);
    }

    /// Moves all hosts back, as the operator has changed their queue.
    pub(crate) fn move_all_back(&mut self, moved: &MovedHosts, now: Nanos, view: &HostVerdictView) {
        moved.clear();
        for place in 0..self.map.places() {
            let key = self.map.key(place);
            if let (Some(host), Some(state)) = (key, self.map.get_mut(place))
                && state.moved_until.take().is_some()
            {
                (state.failing_since, state.next) = (now, now);
                view.show(place, host, state);
                view.changed();
            }
        }
    }

    /// Sets the weight of the queue of moved hosts: their part of all hosts in congested queues.
    fn set_share(&self, moved: &MovedHosts) {
        let count = u32::try_from(moved.hosts().len()).unwrap_or(u32::MAX);
        let others = self.last.hosts.max(self.period.hosts).max(1);
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        moved.set_share(count, others.saturating_add(count));
    }
}

fn host(flow: &FlowKey) -> (Bits, bool) {
    (flow.src, flow.is_ipv6())
}

#[cfg(test)]
mod tests;
