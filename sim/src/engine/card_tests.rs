//! Cards and control cores inside the engine: windows, bursts, reaction times, rate state, the time of a call.

use npcc_pipeline::units::Priority;
use npcc_pipeline::wire::mac_control;

use super::*;
use crate::host::{Gbps, RateControl};
use crate::wire;

/// One sender of 100G and one receiver over a link of `rate` and 10 km, for 4 ms; `flow` and `more` are added to the flows and to the end.
fn scenario(rate: &str, flow: &str, more: &str) -> Scenario {
    let text = format!(
        "
version: 1
name: cards
duration: 4ms
utilisation_over: 4ms
goodput_from: 1ms
switches: [edge, far]
hosts: [{{ name: from, count: 1, switch: edge }}, {{ name: to, count: 1, switch: far }}]
links: [{{ name: dci, from: edge, to: far, rate: {rate}, length: 10km }}]
flows: [{{ from: from, to: to{flow} }}]
watch: dci
vary: {{ scheme: [ecn], sender: [paper] }}
{more}
"
    );
    Scenario::parse("cards", &text).unwrap()
}

fn engine(scenario: &Scenario) -> Engine {
    Engine::build(scenario, &scenario.cases()[0]).unwrap()
}

/// Runs all events before `to`; `look` sees each of them, before it happens.
fn advance(engine: &mut Engine, to: Nanos, mut look: impl FnMut(&Engine, Nanos, Event)) {
    while engine.queue.next().is_some_and(|time| time < to) {
        let (time, event) = engine.queue.pop().unwrap();
        engine.now = time;
        look(engine, time, event);
        engine.happen(event);
    }
    engine.now = to;
}

/// A rate that nothing changes.
#[derive(Debug)]
struct Fixed(Gbps);

impl RateControl for Fixed {
    fn rate(&mut self, _: Nanos) -> Gbps {
        self.0
    }
    fn sent(&mut self, _: u64, _: Nanos) {}
    fn cnp(&mut self, _: Option<Nanos>, _: Nanos) {}
    fn rtt(&mut self, _: Nanos, _: Nanos) {}
}

/// Law: what is sent and not acknowledged stays within the window, which is used, and never stalls, however few packets it is.
#[test]
fn bytes_in_flight_stay_within_the_window_and_a_small_one_never_stalls() {
    for packets in [1, 2, 3, 5, 15, 16, 17, 40] {
        let window = format!("window: {}B", packets * 4_096 + 100);
        let scenario = scenario("100G", ", message: 400KB", &window);
        let mut engine = engine(&scenario);
        let mut most = 0;
        let end = engine.end;
        advance(&mut engine, end, |engine, _, _| {
            most = most.max(engine.flows[0].tx.flying());
        });
        assert_eq!(most, packets, "in flight");
        let flow = &engine.flows[0];
        assert_eq!((flow.tx.timeouts, flow.tx.repeated), (0, 0), "{packets}");
        // A round trip of 102 us and more: the window, or at least three quarters of it, goes out in each.
        let rounds = flow.rx.expected() as f64 / packets as f64;
        assert!(
            (28.0..41.0).contains(&rounds),
            "{packets}: {rounds} in 4 ms"
        );
    }
}

#[test]
fn a_flow_group_has_a_window_of_its_own() {
    let of = |flow: &str, more: &str| engine(&scenario("100G", flow, more)).flows[0].window;
    assert_eq!(of("", ""), Some(976), "4 MB of packets of 4,096 bytes");
    assert_eq!(of("", "window: unlimited"), None);
    assert_eq!(of(", window: 64KiB", "window: unlimited"), Some(16));
    assert_eq!(of(", window: unlimited", "window: 1MB"), None);
}

/// Law: bursts change the order of frames and not the rate: each connection gets its own to the percent, beside others on the same link.
#[test]
fn the_limiter_sends_bursts_at_the_same_rate() {
    let run = |burst: &str, rates: &[Gbps]| {
        let flow = format!(", qps: {}", rates.len());
        let scenario = scenario("90G", &flow, &format!("limiter_burst: {burst}"));
        let mut engine = engine(&scenario);
        for (flow, rate) in engine.flows.iter_mut().zip(rates) {
            flow.rate = Box::new(Fixed(*rate));
        }
        engine.go();
        engine.outcome()
    };
    // Rates that differ, so that bursts meet again and again.
    for rates in [
        &[7.0][..],
        &[13.0, 17.0, 21.0, 27.0],
        &[5.1, 5.3, 5.9, 6.1, 6.7, 7.1, 7.3, 7.9, 8.3, 8.9],
    ] {
        let (one, all) = (run("0B", rates), run("64KB", rates));
        for outcome in [&one, &all] {
            for (share, rate) in outcome.flows.iter().zip(rates) {
                // A burst more or less in 3 ms.
                let off = (share * 90.0 - rate).abs();
                assert!(off < 0.01 * rate + 0.18, "{share} of 90 for {rate}");
            }
        }
        assert!(one.peak < 5_000 * rates.len() as u64, "{}", one.peak);
    }
    // A burst of 64 KB at 100G into 90G leaves a tenth of it in the queue.
    let (one, all) = (run("0B", &[7.0]).peak, run("64KB", &[7.0]).peak);
    assert!(
        one < 5_000 && (8_000..14_000).contains(&all),
        "{one}, {all}"
    );
}

#[test]
fn idle_time_makes_no_burst_longer() {
    let scenario = scenario("25G", ", burst: 100KB, every: 1ms", "limiter_burst: 64KB");
    let mut engine = engine(&scenario);
    engine.flows[0].rate = Box::new(Fixed(10.0));
    engine.go();
    let outcome = engine.outcome();
    // 16 of the 25 packets of a message are a burst: they go out at 100G, and three quarters of them wait.
    assert!((44_000..54_000).contains(&outcome.peak), "{}", outcome.peak);
}

/// A CNP for the first connection, as it reaches its sender.
fn cnp(engine: &mut Engine) {
    let flow = &engine.flows[0];
    let (host, frame) = (flow.src, wire::cnp(&flow.back, None));
    engine.host_receive(host, &frame);
}

#[test]
fn a_cnp_has_its_effect_after_the_reaction_time() {
    for (key, reaction) in [("", 0), ("reaction: 10us", 10_000)] {
        let mut engine = engine(&scenario("100G", "", key));
        let now = engine.start + Nanos::from_micros(50);
        advance(&mut engine, now, |_, _, _| {});
        cnp(&mut engine);
        if reaction > 0 {
            advance(&mut engine, now + Nanos(reaction - 1), |_, _, _| {});
            let rate = engine.flows[0].rate.rate(engine.now);
            assert!((rate - 100.0).abs() < 1e-9, "too early: {rate}");
        }
        advance(&mut engine, now + Nanos(reaction + 1), |_, _, _| {});
        let rate = engine.flows[0].rate.rate(engine.now);
        assert!((rate - 50.0).abs() < 1e-9, "{key}: {rate}");
    }
}

#[test]
fn a_pause_has_its_effect_at_a_host_after_the_reaction_time() {
    let data = Priority::new(3);
    let mut classes = [0; 8];
    classes[data.index()] = u16::MAX;
    let mac = npcc_pipeline::units::Mac([2, 2, 1, 0, 0, 0]);
    let frame = SimFrame::with(&mac_control::build(mac, data.bit(), classes));
    for (key, reaction) in [("", 0), ("pfc_reaction: 10us", 10_000)] {
        let mut engine = engine(&scenario("100G", "", key));
        let now = engine.start + Nanos::from_micros(50);
        advance(&mut engine, now, |_, _, _| {});
        engine.host_receive(0, &frame);
        if reaction > 0 {
            advance(&mut engine, now + Nanos(reaction), |_, _, _| {});
            assert!(engine.hosts[0].pause.until(data) <= now, "too early");
        }
        let sent = |engine: &Engine| engine.links[engine.hosts[0].link].sent.frames;
        advance(&mut engine, now + Nanos(reaction + 500), |_, _, _| {});
        let before = sent(&engine);
        advance(&mut engine, now + Nanos(reaction + 100_000), |_, _, _| {});
        assert_eq!(sent(&engine), before, "{key}: paused");
    }
}

/// Law: rate state belongs to the queue pair. One that was cut and then had nothing to send begins its next message at the state that its
/// timers have reached, and not at line rate.
#[test]
fn rate_state_belongs_to_the_queue_pair_and_outlives_a_message() {
    let scenario = scenario("100G", ", burst: 40KB, every: 1ms", "");
    let mut engine = engine(&scenario);
    let mut alone = Sender::Paper.start(100.0);
    let cut = engine.start + Nanos::from_micros(200);
    advance(&mut engine, cut, |_, _, _| {});
    // The first message has been sent at line rate; the queue pair is idle.
    assert!(!engine.flows[0].tx.is_ready());
    for _ in 0..8 {
        cnp(&mut engine);
        alone.cnp(None, cut);
    }
    let next = engine.start + Nanos(1_000_500);
    advance(&mut engine, next, |_, _, _| {});
    let (rate, state) = (engine.flows[0].rate.rate(next), alone.rate(next));
    assert!((rate - state).abs() < 1e-9, "{rate} and {state}");
    // Ten packets at a rate that has recovered for 15 timers: additive steps of 40 Mb/s from 0.8.
    assert!(rate < 2.0, "{rate}");
    let end = engine.end;
    advance(&mut engine, end, |_, _, _| {});
    let times = &engine.record.bursts[0];
    assert!(times[0] < Nanos::from_micros(70), "{times:?}");
    assert!(times[1] > Nanos::from_micros(150), "{times:?}");
}

/// Four senders of 100G into 100G over 100 km under the policy `model`, with this cost of the control core's calls.
fn congested(cost: &str) -> Engine {
    let text = format!(
        "
version: 1
name: cost
duration: 1ms
switches: [edge, far]
hosts: [{{ name: from, count: 4, switch: edge }}, {{ name: to, count: 4, switch: far }}]
links: [{{ name: dci, from: edge, to: far, rate: 100G, length: 100km }}]
flows: [{{ from: from, to: to, qps: 4 }}]
watch: dci
control_cost: {cost}
vary: {{ scheme: [model] }}
"
    );
    engine(&Scenario::parse("cost", &text).unwrap())
}

/// Law: a call takes its time. The CNPs of a call leave one after the other from its beginning on, and the next call begins after the last.
#[test]
fn cnps_leave_as_they_are_made_and_the_next_call_waits() {
    let times = |cost: &str| {
        let mut engine = congested(cost);
        let (start, end) = (engine.start, engine.end);
        let (mut calls, mut cnps) = (Vec::new(), Vec::new());
        advance(&mut engine, end, |_, time, event| match event {
            Event::Control(_) if time >= start => calls.push(time),
            Event::CnpMade(_) if time >= start => cnps.push(time),
            _ => {}
        });
        let sent = engine
            .switches
            .iter()
            .map(|switch| switch.cnps)
            .sum::<u64>();
        (calls, cnps, sent)
    };
    let gaps = |times: &[Nanos]| -> Vec<u64> {
        times.windows(2).map(|two| two[1].since(two[0]).0).collect()
    };
    let (calls, cnps, sent) = times("{ call: 0us, record: 0us, flow: 0us, cnp: 0us }");
    assert!(gaps(&calls).iter().all(|gap| *gap <= 4_000));
    assert!(cnps.is_empty() && sent > 16, "{sent}: at once");
    let (calls, cnps, sent) = times("{ call: 6us, record: 0us, flow: 0us, cnp: 500ns }");
    assert_eq!(cnps.len() as u64, sent);
    assert!(sent > 16, "{sent}");
    for pair in calls.windows(2) {
        let made: Vec<u64> = cnps
            .iter()
            .filter(|time| pair[0] < **time && **time <= pair[1])
            .map(|time| time.since(pair[0]).0)
            .collect();
        let expected: Vec<u64> = (1..=made.len() as u64).map(|n| 6_000 + 500 * n).collect();
        assert_eq!(made, expected);
        let took = 6_000 + 500 * made.len() as u64;
        assert_eq!(pair[1].since(pair[0]).0, took, "the next begins at the end");
    }
    // Records and flows take time too.
    let (with_records, ..) = times("{ call: 0us, record: 20us, flow: 0us, cnp: 0us }");
    let (with_flows, ..) = times("{ call: 0us, record: 0us, flow: 20us, cnp: 0us }");
    for calls in [with_records, with_flows] {
        assert!(gaps(&calls).iter().any(|gap| *gap >= 20_000), "{calls:?}");
    }
}
