//! The record `state`: what a switch says of itself, in brief.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

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

/// Reads the answer to the request `snapshot`.
pub(super) fn read(snapshot: &Value) -> Option<SwitchState> {
    let at = |path| snapshot.pointer(path);
    Some(SwitchState {
        version: at("/version")?.as_str()?.to_owned(),
        uptime_s: at("/seconds")?.as_f64()?,
        worst_queue: worst_queue(at("/ports")?.as_array()?),
        cnps: at("/npcc/cnps_sent")?.as_u64()?,
        would_send: at("/npcc/would_send")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        // The switch has percent.
        paired: at("/npcc/health/paired")
            .and_then(Value::as_f64)
            .unwrap_or_default()
            / 100.0,
    })
}

fn worst_queue(ports: &[Value]) -> Option<WorstQueue> {
    let queues = ports.iter().flat_map(|port| {
        let queues = port["queues"].as_array().into_iter().flatten();
        queues.filter_map(|queue| of_queue(port, queue))
    });
    queues.max_by(|a, b| a.delay_us.total_cmp(&b.delay_us))
}

fn of_queue(port: &Value, queue: &Value) -> Option<WorstQueue> {
    let bytes = queue["depth"].as_u64().filter(|bytes| *bytes > 0)?;
    let shaped = port["rate"].as_u64();
    let rate = shaped.or_else(|| port["link_speed"].as_u64())?;
    Some(WorstQueue {
        port: port["name"].as_str()?.to_owned(),
        priority: queue["priority"].as_u64()?,
        bytes,
        delay_us: bytes as f64 * 8e6 / rate.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_worst_queue_is_the_one_that_takes_longest() {
        let queue = |priority, depth| json!({"priority": priority, "depth": depth});
        let snapshot = json!({
            "version": "1", "seconds": 2.5,
            "ports": [
                {"name": "fast", "link_speed": 100_000_000_000u64, "rate": null, "queues": [queue(3, 125_000)]},
                {"name": "slow", "link_speed": 100_000_000_000u64, "rate": 1_000_000_000, "queues": [queue(0, 0), queue(4, 12_500)]},
            ],
            "npcc": {"cnps_sent": 7, "would_send": 1, "health": {"paired": 50.0}},
        });
        let state = read(&snapshot).unwrap();
        let worst = state.worst_queue.unwrap();
        assert_eq!(
            (worst.port.as_str(), worst.priority, worst.bytes),
            ("slow", 4, 12_500)
        );
        assert!((worst.delay_us - 100.0).abs() < 1e-9);
        assert_eq!((state.cnps, state.would_send), (7, 1));
        assert!((state.paired - 0.5).abs() < 1e-9);
        assert_eq!(read(&json!({"version": "1"})), None);
    }
}
