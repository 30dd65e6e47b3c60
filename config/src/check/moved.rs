//! Check of the queue of hosts that do not respond to CNPs: lossy, scheduled by weight, and used by nothing else.

use super::Check;
use crate::model::{ConfigFile, PriorityId, Scheduler};
use crate::resolved::ResolvedQos;
use crate::tree::Path;

/// Priorities in the order in which one is proposed.
const PROPOSED: [u32; 8] = [5, 4, 2, 1, 7, 0, 3, 6];

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let Some(queue) = file.npcc.hosts.unresponsive.queue() else {
        return;
    };
    let path = Path::root("npcc")
        .key("hosts")
        .key("unresponsive")
        .key("queue");
    if ["qos", "ports", "npcc"]
        .iter()
        .any(|root| !check.certain(&Path::root(root)))
    {
        return;
    }
    if let Some(message) = obstacle(file, queue) {
        let mut free = PROPOSED.into_iter().filter_map(PriorityId::new);
        let hint = match free.find(|queue| obstacle(file, *queue).is_none()) {
            Some(free) => {
                format!("choose a lossy DWRR queue that nothing else uses, such as {free}")
            }
            None => "no queue is free: write mark, or free one".to_owned(),
        };
        check.error(&path, message, hint);
    }
}

/// Returns the reason why moved hosts cannot have a queue.
fn obstacle(file: &ConfigFile, queue: PriorityId) -> Option<String> {
    let qos = ResolvedQos::new(&file.qos);
    let (at, byte) = (queue.index(), queue.byte());
    let resolved = &qos.priorities[at];
    let watching = file.ports.iter().find(|port| {
        let npcc = port.npcc.as_ref().filter(|npcc| npcc.enable);
        npcc.is_some_and(|npcc| npcc.queues.contains(&queue))
    });
    let dscp = qos.dscp.iter().position(|priority| *priority == byte);
    let pcp = qos.pcp.iter().position(|priority| *priority == byte);
    if resolved.lossless {
        Some(format!(
            "queue {queue} is lossless: hosts that do not slow down would pause the others"
        ))
    } else if queue == file.npcc.cnp.priority {
        Some(format!("queue {queue} carries the CNPs"))
    } else if resolved.scheduler == Scheduler::Strict {
        Some(format!(
            "queue {queue} is strict: it has no weight, and goes before the others"
        ))
    } else if let Some(port) = watching {
        Some(format!(
            "NPCC watches queue {queue} on port `{}`",
            port.name
        ))
    } else if qos.default_priority == byte {
        Some(format!(
            "queue {queue} has all packets that no map classifies"
        ))
    } else if let Some(dscp) = dscp {
        Some(format!("queue {queue} has the packets with DSCP {dscp}"))
    } else {
        pcp.map(|pcp| format!("queue {queue} has the packets with PCP {pcp}"))
    }
}

#[cfg(test)]
mod tests {
    /// Returns the text of the errors of a configuration whose unresponsive hosts are moved to `queue`; `more` are further keys.
    fn errors_of(queue: u8, more: &str) -> String {
        let text = format!(
            "npcc: {{ hosts: {{ unresponsive: {{ queue: {queue} }} }} }}\n{more}\nports:\n  - {{ name: dc0, device: net_null0, addresses: [10.0.1.1/24] }}\n  - {{ name: wan0, device: net_null1, speed: 10G, npcc: {{ queues: [3, 4] }}, addresses: [10.0.12.1/24] }}\n"
        );
        crate::parse("test.yaml", &text).map_or_else(|report| report.to_string(), |_| String::new())
    }

    #[test]
    fn the_queue_of_moved_hosts_is_one_that_nothing_else_uses() {
        let lossy = "qos: { profile: lossy }";
        for (queue, more, said) in [
            (3, "", "queue 3 is lossless"),
            (6, lossy, "queue 6 carries the CNPs"),
            (
                7,
                "qos: { profile: lossy, priorities: { 7: { scheduler: strict } } }",
                "queue 7 is strict",
            ),
            (4, lossy, "NPCC watches queue 4 on port `wan0`"),
            (0, lossy, "queue 0 has all packets that no map classifies"),
            (
                5,
                "qos: { profile: lossy, dscp_to_priority: { 40: 5 } }",
                "queue 5 has the packets with DSCP 40",
            ),
            (
                5,
                "qos: { profile: lossy, pcp_to_priority: { 4: 5 } }",
                "queue 5 has the packets with PCP 4",
            ),
        ] {
            let text = errors_of(queue, more);
            assert!(text.contains(said), "{queue} {more}: {text}");
            let free = if queue == 5 { 2 } else { 5 };
            assert!(text.contains(&format!("such as {free}")), "{text}");
        }
        assert_eq!(errors_of(5, lossy), "");
        assert_eq!(
            errors_of(
                2,
                "qos: { profile: lossy, priorities: { 2: { weight: 7 } } }"
            ),
            ""
        );
    }
}
