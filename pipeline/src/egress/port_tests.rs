//! Tests of what a port publishes of its queues.

use super::*;

/// The control core reads it in every tick: each write costs both cores a cache line transfer.
#[test]
fn the_level_of_a_queue_is_written_only_when_it_is_another() {
    let config = EgressConfig {
        rate: None,
        max_frame: 1_522,
        max_absence: Nanos::ZERO,
        queues: Default::default(),
    };
    let (mut port, counters) = (EgressPort::new(&config, 1), PortCounters::default());
    let (three, frame) = (Priority::new(3), Amount::frame(1_500));
    let level = &counters.queues[3].level;
    // A write by the worker would overwrite this.
    level.depth.set(7);
    port.account_in(three, frame, Nanos(5));
    port.account_out(three, frame);
    port.publish(&counters);
    assert_eq!(
        (level.depth.get(), counters.queues[3].peak.get()),
        (7, 1_500)
    );
    port.account_in(three, frame, Nanos(6));
    port.publish(&counters);
    assert_eq!(level.depth.get(), 1_500);
}

#[test]
fn a_rise_to_the_second_watched_depth_raises_the_alarm() {
    let mut queues: [EgressQueueConfig; crate::units::PRIORITIES] = Default::default();
    queues[3].watched_depths = [1_000, 2_000];
    let config = EgressConfig {
        rate: None,
        max_frame: 1_522,
        max_absence: Nanos::ZERO,
        queues,
    };
    let (mut port, counters) = (EgressPort::new(&config, 1), PortCounters::default());
    let (three, frame) = (Priority::new(3), Amount::frame(1_500));
    for (at, alarm, depth) in [(5, 0, 1_500), (7, 7, 3_000), (9, 7, 4_500)] {
        port.account_in(three, frame, Nanos(at));
        assert!(
            counters.alarm.get() < alarm || alarm < at,
            "not before it is published"
        );
        port.publish(&counters);
        let queue = &counters.queues[3];
        assert_eq!(
            (counters.alarm.get(), queue.level.depth.get()),
            (alarm, depth)
        );
        assert_eq!(queue.level.crossed[0].get(), 5);
    }
    for _ in 0..2 {
        port.account_out(three, frame);
    }
    port.account_in(three, frame, Nanos(11));
    port.publish(&counters);
    assert_eq!(counters.alarm.get(), 11, "a second rise");
}
