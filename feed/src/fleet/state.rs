//! The record `state`: what a switch says of itself, in brief.

use npcc_api::model::{Port, Queue, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;

/// State of a switch.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct SwitchState {
    /// Version of the switch.
    pub(super) version: String,
    /// Time since its start, in seconds.
    pub(super) uptime_s: f64,
    /// Queue that takes longest to empty; `None` if all are empty.
    pub(super) worst_queue: Option<WorstQueue>,
    /// CNPs sent since the start.
    pub(super) cnps: u64,
    /// CNPs that would have been sent, where the action sends none.
    pub(super) would_send: u64,
    /// Share of data bytes whose sender is known, 0 to 1.
    pub(super) paired: f64,
}

/// Queue that takes longest to empty.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct WorstQueue {
    /// Name of the port.
    pub(super) port: String,
    /// Priority of the queue, 0 to 7.
    pub(super) priority: u64,
    /// Wire bytes that wait.
    pub(super) bytes: u64,
    /// Time to empty at the port's rate, in microseconds.
    pub(super) delay_us: f64,
}

/// Returns the state that a snapshot of the switch shows.
pub(super) fn read(snapshot: &Snapshot) -> SwitchState {
    let queues = snapshot.ports.iter().flat_map(|port| {
        let of_queue = |queue| of_queue(port, queue);
        port.queues.iter().filter_map(of_queue)
    });
    SwitchState {
        version: snapshot.version.clone(),
        uptime_s: snapshot.seconds,
        worst_queue: queues.max_by(|a, b| a.delay_us.total_cmp(&b.delay_us)),
        cnps: snapshot.npcc.cnps_sent,
        would_send: snapshot.npcc.would_send,
        // The switch has percent.
        paired: snapshot.npcc.health.paired / 100.0,
    }
}

fn of_queue(port: &Port, queue: &Queue) -> Option<WorstQueue> {
    let bytes = Some(queue.level.depth).filter(|bytes| *bytes > 0)?;
    let rate = port.rate.unwrap_or(port.link_speed);
    Some(WorstQueue {
        port: port.name.clone(),
        priority: queue.priority.into(),
        bytes,
        delay_us: bytes as f64 * 8e6 / rate.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_queue_is_the_one_that_takes_longest() {
        let queue = |priority, depth| {
            let mut queue = Queue {
                priority,
                ..Queue::default()
            };
            queue.level.depth = depth;
            queue
        };
        let port = |name: &str, rate, queues| Port {
            name: name.to_owned(),
            link_speed: 100_000_000_000,
            rate,
            queues,
            ..Port::default()
        };
        let mut snapshot = Snapshot {
            ports: vec![
                port("fast", None, vec![queue(3, 125_000)]),
                port(
                    "slow",
                    Some(1_000_000_000),
                    vec![queue(0, 0), queue(4, 12_500)],
                ),
            ],
            ..Snapshot::default()
        };
        (snapshot.npcc.cnps_sent, snapshot.npcc.would_send) = (7, 1);
        snapshot.npcc.health.paired = 50.0;
        let state = read(&snapshot);
        let worst = state.worst_queue.unwrap();
        assert_eq!(
            (worst.port.as_str(), worst.priority, worst.bytes),
            ("slow", 4, 12_500)
        );
        assert!((worst.delay_us - 100.0).abs() < 1e-9);
        assert_eq!((state.cnps, state.would_send), (7, 1));
        assert!((state.paired - 0.5).abs() < 1e-9);
    }
}
