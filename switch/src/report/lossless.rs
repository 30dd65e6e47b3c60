//! Flow control and buffer in the snapshot.

use npcc_pipeline::counters::{Counters, FlowCounters, Gauge, PauseCounters, PortCounters};
use npcc_pipeline::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::wiring::pfc::PortFlow;

/// A port's flow control.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowControl {
    /// Who obeys pause frames: `hardware`, `software` or `none`.
    pub backend: String,
    /// Why.
    pub why: String,
    /// What became of a pause frame sent at start: `sent`, `not counted`, `refused`, `link down`, `not run`.
    pub self_test: String,
    /// Wire bytes the transmit ring may hold; absent where the driver does not tell what it holds.
    pub tx_outstanding: Option<u64>,
    /// How the fill of the receive ring is known: `driver`, or `bursts` where it does not tell.
    pub rx_fill: String,
    /// Bits per second by which quanta are reckoned.
    pub rate: u64,
    /// Priorities the peer is asked to pause.
    pub send: Vec<u8>,
    /// Priorities whose pauses are obeyed.
    pub honour: Vec<u8>,
    /// Priorities the peer has paused now.
    pub paused: Vec<u8>,
    /// Priorities we have paused now.
    pub asserted: Vec<u8>,
    /// Priorities under a storm now.
    pub storm: Vec<u8>,
    /// Pauses begun because the buffer filled.
    pub xoff_buffer: u64,
    /// Pauses begun because the worker fell behind its receive ring.
    pub xoff_cpu: u64,
    /// Refreshes sent after the peer's pause had run out.
    pub late_refreshes: u64,
    /// Longest time from a wanted XOFF to the frame in the device, in us.
    pub xoff_us: f64,
    /// Longest time we may go on sending after a pause arrived, in us: for the peer's `peer_response`.
    pub response_us: f64,
    /// Wire bytes that may arrive beyond headroom, because a worker's turn was longer than headroom covers.
    pub headroom_short: u64,
    /// 802.3x pause frames, ignored.
    pub global_pause: u64,
    /// MAC control frames that were malformed or of another kind.
    pub invalid: u64,
    /// Each priority.
    pub priorities: Vec<Pause>,
}

/// Pause of one priority.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// The priority.
    pub priority: u8,
    /// Pauses the peer began.
    pub rx_pauses: u64,
    /// Time it had us paused, in us.
    pub rx_paused_us: f64,
    /// Length of its last pause that ended, in us.
    pub rx_last_us: f64,
    /// Length of its longest pause, in us.
    pub rx_longest_us: f64,
    /// Seconds since its last pause began; absent when there was none.
    pub rx_began_s_ago: Option<f64>,
    /// Pauses we began.
    pub tx_pauses: u64,
    /// Time we had it paused, in us.
    pub tx_paused_us: f64,
    /// Length of our last pause that ended, in us.
    pub tx_last_us: f64,
    /// Length of our longest pause, in us.
    pub tx_longest_us: f64,
    /// Seconds since our last pause began; absent when there was none.
    pub tx_began_s_ago: Option<f64>,
    /// Storms found.
    pub storms: u64,
    /// Seconds since the last storm was found; absent when there was none.
    pub storm_s_ago: Option<f64>,
    /// Storms that ended.
    pub storms_ended: u64,
    /// Frames dropped by the watchdog on their way out.
    pub storm_tx_dropped: u64,
    /// Frames dropped by the watchdog on the port they came in by.
    pub storm_rx_dropped: u64,
}

/// One ingress group, in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its priority.
    pub priority: u8,
    /// Its sender is paused, not its frames dropped.
    pub lossless: bool,
    /// Held.
    pub held: u64,
    /// Most held since the last `clear watermarks`.
    pub held_peak: u64,
    /// Most held ever.
    pub held_peak_ever: u64,
    /// Size of its headroom.
    pub headroom_size: u64,
    /// Held in headroom.
    pub headroom: u64,
    /// Most in headroom since the last `clear watermarks`.
    pub headroom_peak: u64,
    /// Most in headroom ever.
    pub headroom_peak_ever: u64,
    /// Frames the buffer had no room for.
    pub dropped: u64,
}

/// The shared buffer, in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Buffer {
    /// Size.
    pub pool: u64,
    /// Of that, shared by all.
    pub shared: u64,
    /// Of that, headroom.
    pub headroom_size: u64,
    /// Held.
    pub used: u64,
    /// Most held since the last `clear watermarks`.
    pub used_peak: u64,
    /// Held in headroom.
    pub headroom: u64,
    /// Most held in headroom since the last `clear watermarks`.
    pub headroom_peak: u64,
    /// Buffers held.
    pub frames: u64,
    /// Longest turn of a worker's loop since the last `clear watermarks`, in ns.
    pub turn_ns: u64,
    /// The longest that headroom covers, in ns.
    pub turn_covered_ns: u64,
}

/// Sizes that do not change.
#[derive(Debug, Clone, Copy, Default)]
pub struct BufferFacts {
    /// Size in wire bytes.
    pub pool: u64,
    /// Shared by all.
    pub shared: u64,
    /// Headroom.
    pub headroom: u64,
    /// Longest turn of a worker's loop that headroom covers.
    pub turn: Nanos,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a report rounds to three digits"
)]
fn micros(ns: u64) -> f64 {
    (ns / 10) as f64 / 100.0
}

fn bits(mask: u64) -> Vec<u8> {
    (0..8).filter(|n| mask & 1 << n != 0).collect()
}

/// A port's flow control, over all workers; `turn` is the longest turn of the loop in ns, of which headroom covers `covered`.
pub fn flow<'a>(
    facts: &PortFlow,
    turn: u64,
    covered: Nanos,
    clock: &Clock,
    counters: impl Iterator<Item = &'a PortCounters> + Clone,
) -> FlowControl {
    let all = || counters.clone().map(|port| &port.flow);
    let sum = |of: fn(&PauseCounters) -> u64, n: usize| {
        all()
            .filter_map(|flow| flow.priorities.get(n))
            .map(of)
            .sum::<u64>()
    };
    let most = |of: fn(&PauseCounters) -> &Gauge, n: usize| {
        let gauges = all().filter_map(|flow| flow.priorities.get(n));
        gauges
            .map(|pause| of(pause).get())
            .max()
            .unwrap_or_default()
    };
    let ago = |of: fn(&PauseCounters) -> &Gauge, n: usize| {
        let then = most(of, n);
        (then != 0).then(|| clock.seconds_since(Nanos(then)))
    };
    let now = clock.now();
    // A pause that still lasts counts up to now.
    let lasting =
        |mask: fn(&FlowCounters) -> &Gauge, of: fn(&PauseCounters) -> &Gauge, n: usize| {
            let lasts = all().any(|flow| mask(flow).get() & 1 << n != 0);
            if lasts {
                now.since(Nanos(most(of, n))).0
            } else {
                0
            }
        };
    let pause = |n: u8| {
        let at = usize::from(n);
        let rx_lasting = lasting(|flow| &flow.paused, |pause| &pause.rx_began, at);
        let tx_lasting = lasting(|flow| &flow.asserted, |pause| &pause.tx_began, at);
        Pause {
            priority: n,
            rx_pauses: sum(|pause| pause.rx_pauses.get(), at),
            rx_paused_us: micros(sum(|pause| pause.rx_paused_ns.get(), at) + rx_lasting),
            rx_last_us: micros(sum(|pause| pause.rx_last_ns.get(), at)),
            rx_longest_us: micros(most(|pause| &pause.rx_longest_ns, at).max(rx_lasting)),
            rx_began_s_ago: ago(|pause| &pause.rx_began, at),
            tx_pauses: sum(|pause| pause.tx_pauses.get(), at),
            tx_paused_us: micros(sum(|pause| pause.tx_paused_ns.get(), at) + tx_lasting),
            tx_last_us: micros(sum(|pause| pause.tx_last_ns.get(), at)),
            tx_longest_us: micros(most(|pause| &pause.tx_longest_ns, at).max(tx_lasting)),
            tx_began_s_ago: ago(|pause| &pause.tx_began, at),
            storms: sum(|pause| pause.storms.get(), at),
            storm_s_ago: ago(|pause| &pause.storm_at, at),
            storms_ended: sum(|pause| pause.storms_ended.get(), at),
            storm_tx_dropped: sum(|pause| pause.storm_tx_dropped.get(), at),
            storm_rx_dropped: sum(|pause| pause.storm_rx_dropped.get(), at),
        }
    };
    let mask =
        |of: fn(&FlowCounters) -> &Gauge| bits(all().fold(0, |mask, flow| mask | of(flow).get()));
    let longest = all().map(|flow| flow.response_ns.get()).max();
    FlowControl {
        backend: facts.verdict.backend.name().to_owned(),
        why: facts.verdict.why.clone(),
        self_test: facts.self_test.name().to_owned(),
        tx_outstanding: facts.outstanding,
        rx_fill: if facts.tells_fill { "driver" } else { "bursts" }.to_owned(),
        rate: facts.rate.0,
        send: bits(u64::from(facts.send)),
        honour: bits(u64::from(facts.honour)),
        paused: mask(|flow| &flow.paused),
        asserted: mask(|flow| &flow.asserted),
        storm: mask(|flow| &flow.storm),
        xoff_buffer: all().map(|flow| flow.xoff_buffer.get()).sum(),
        xoff_cpu: all().map(|flow| flow.xoff_cpu.get()).sum(),
        late_refreshes: all().map(|flow| flow.late.get()).sum(),
        xoff_us: micros(longest.unwrap_or_default()),
        response_us: micros(turn.saturating_add(facts.rate.time_of(facts.hand).0)),
        headroom_short: if facts.send == 0 {
            0
        } else {
            facts.rate.bytes_in(Nanos(turn.saturating_sub(covered.0)))
        },
        global_pause: all().map(|flow| flow.global_pause.get()).sum(),
        invalid: all().map(|flow| flow.invalid.get()).sum(),
        priorities: (0..8).map(pause).collect(),
    }
}

/// A port's ingress groups, over all workers.
pub fn groups<'a>(
    facts: &PortFlow,
    counters: impl Iterator<Item = &'a PortCounters> + Clone,
) -> Vec<Group> {
    let group = |n: u8| {
        let lossless = facts.send & 1 << n != 0;
        let mut group = Group {
            priority: n,
            lossless,
            headroom_size: if lossless { facts.headroom } else { 0 },
            ..Group::default()
        };
        for own in counters
            .clone()
            .filter_map(|port| port.groups.get(usize::from(n)))
        {
            let (held_peak, headroom_peak) = (own.held_peak.get(), own.headroom_peak.get());
            group.held += own.held.get();
            group.held_peak += held_peak;
            group.held_peak_ever += held_peak.max(own.held_peak_before.get());
            group.headroom += own.headroom.get();
            group.headroom_peak += headroom_peak;
            group.headroom_peak_ever += headroom_peak.max(own.headroom_peak_before.get());
            group.dropped += own.dropped.get();
        }
        group
    };
    (0..8).map(group).collect()
}

/// The buffer, over all workers.
pub fn buffer<'a>(
    facts: BufferFacts,
    turn: u64,
    workers: impl Iterator<Item = &'a Counters>,
) -> Buffer {
    let mut buffer = Buffer {
        pool: facts.pool,
        shared: facts.shared,
        headroom_size: facts.headroom,
        turn_ns: turn,
        turn_covered_ns: facts.turn.0,
        ..Buffer::default()
    };
    let gauges: Vec<_> = workers.map(|counters| &counters.buffer).collect();
    buffer.used = Gauge::total(gauges.iter().map(|own| &own.used));
    buffer.frames = Gauge::total(gauges.iter().map(|own| &own.frames));
    for own in gauges {
        buffer.headroom += own.headroom.get();
        // Peaks are of the whole, as each worker saw it.
        buffer.used_peak = buffer.used_peak.max(own.used_peak.get());
        buffer.headroom_peak = buffer.headroom_peak.max(own.headroom_peak.get());
    }
    buffer
}
