//! An event in words: the comment of a captured frame.

use std::fmt::Write;

use npcc_api::capture::CaptureStart;
use npcc_pipeline::capture::{Event, Kind};
use npcc_pipeline::num::{real, whole};
use npcc_pipeline::units::{Nanos, PortId};

/// Name of a port.
pub(crate) fn port(start: &CaptureStart, port: PortId) -> &str {
    let found = start.ports.get(port.index());
    found.map_or("?", |(name, _)| name.as_str())
}

/// Fate of a frame: one word and `key=value` for what is known.
pub(super) fn comment(start: &CaptureStart, event: &Event) -> String {
    let mut text = event.kind.name().to_owned();
    // Writing to a string cannot fail.
    if let Some(reason) = event.reason {
        let _ = write!(text, " reason={}", reason.name());
    }
    if let Some(ingress) = event.ingress {
        let _ = write!(text, " in={}", port(start, ingress));
    }
    if event.has(Event::MADE) {
        text.push_str(" in=switch");
    }
    if let Some(egress) = event.egress {
        let _ = write!(text, " out={}", port(start, egress));
    }
    if let Some(priority) = event.priority {
        let what = if event.kind == Kind::Received {
            "priority"
        } else {
            "queue"
        };
        let _ = write!(text, " {what}={}", priority.get());
        if event.kind != Kind::Received {
            let _ = write!(text, " depth={}", event.depth);
        }
    }
    if event.kind == Kind::Dropped && event.has(Event::REWRITTEN) {
        text.push_str(" rewritten");
    }
    text
}

/// A time of the workers' clock in ns since 1970.
pub(crate) fn since_1970(start: &CaptureStart, time: Nanos) -> u64 {
    let (earlier, ahead) = if time.0 >= start.clock_ns {
        (time.0 - start.clock_ns, true)
    } else {
        (start.clock_ns - time.0, false)
    };
    let separate = whole(real(earlier) * start.scale);
    if ahead {
        start.epoch_ns.saturating_add(separate)
    } else {
        start.epoch_ns.saturating_sub(separate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::capture::Notes;
    use npcc_pipeline::drop::DropReason;
    use npcc_pipeline::units::{Priority, WorkerId};

    fn start() -> CaptureStart {
        CaptureStart {
            id: 1,
            version: String::new(),
            ports: ["dc0", "wan0"]
                .map(|name| (name.to_owned(), String::new()))
                .to_vec(),
            epoch_ns: 1_000_000,
            clock_ns: 500,
            scale: 2.0,
        }
    }

    #[test]
    fn a_comment_says_what_is_known() {
        let dropped = Event {
            capture: 1,
            trace: 0,
            kind: Kind::Dropped,
            reason: Some(DropReason::QueueFull),
            ingress: Some(PortId(0)),
            egress: Some(PortId(1)),
            priority: Some(Priority::new(3)),
            worker: WorkerId::FIRST,
            flags: Event::REWRITTEN,
            len: 60,
            time: Nanos(0),
            depth: 9_000,
            notes: Notes::default(),
        };
        let text = comment(&start(), &dropped);
        assert_eq!(
            text,
            "dropped reason=queue_full in=dc0 out=wan0 queue=3 depth=9000 rewritten"
        );
        let received = Event {
            kind: Kind::Received,
            reason: None,
            egress: None,
            flags: 0,
            ..dropped
        };
        assert_eq!(comment(&start(), &received), "received in=dc0 priority=3");
    }

    #[test]
    fn times_are_of_the_world_also_where_the_clock_is_dilated() {
        assert_eq!(since_1970(&start(), Nanos(600)), 1_000_200);
        assert_eq!(since_1970(&start(), Nanos(400)), 999_800);
    }
}
