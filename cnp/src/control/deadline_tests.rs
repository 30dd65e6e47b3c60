//! A tick that takes too long ends: work is counted by a clock that advances whenever it is read.

use std::cell::Cell;

use super::tests::{back, data};
use super::*;
use crate::admission::CnpRequest;
use crate::control::config::Settings;
use crate::traffic_tests::rig::{Rig, config, queue, with};
use npcc_pipeline::units::Priority;
use npcc_roce::fixed_map::TOGETHER;

const TICK: Nanos = Nanos::from_micros(20);

/// Number of looks at each of eight queues.
fn looks(rig: &Rig) -> Vec<u64> {
    let count = |queue: &crate::status::QueueStatus| {
        let all = crate::detector::Zone::ALL.into_iter();
        all.flat_map(|zone| crate::status::Row::ALL.map(|row| queue.cell(zone, row).get()))
            .sum()
    };
    rig.core.status().queues().iter().map(count).collect()
}

/// Runs ticks of eight queues, of which two are above `hard`, by a clock that is `late`.
fn ticks(count: u64, late: Nanos) -> Rig {
    let mut config = config(TICK);
    config.settings.queues = (0..8)
        .map(|priority| config::WatchedQueueConfig {
            priority: Priority::new(priority),
            ..queue(TICK)
        })
        .collect();
    let mut rig = Rig::new(&config);
    for _ in 0..count {
        rig.now += TICK;
        let now = rig.now;
        let depth = |_, priority: Priority| {
            if priority.index() > 5 {
                900_000
            } else {
                150_000
            }
        };
        let mut out = |_: CnpRequest| Ok(());
        rig.core
            .run_call_within(now, &|| now + late, depth, &mut out);
    }
    rig
}

#[test]
fn queues_at_hard_come_first_and_the_others_in_turn() {
    let rig = ticks(12, Nanos::ZERO);
    assert_eq!(looks(&rig), [12; 8]);
    assert_eq!(rig.core.status().queues_deferred.get(), 0);
    // Records alone took all the time.
    let rig = ticks(12, Nanos::from_millis(1));
    assert_eq!(looks(&rig), [2, 2, 2, 2, 2, 2, 12, 12]);
    assert_eq!(rig.core.status().queues_deferred.get(), 12);
}

/// Work of one tick while a microsecond passes at every reading of the clock: records, readings, CNPs, and the time.
fn spent(flows: u32, depth: u64) -> [u64; 4] {
    let settings = |settings: &mut Settings| {
        (settings.cap, settings.cap_per_second) = (1_000, u64::MAX / 2);
    };
    let config = ControlConfig {
        reads_per_tick: 8_192,
        records_per_tick: 8_192,
        cnps_per_tick: 8_192,
        ..with(TICK, settings)
    };
    let mut rig = Rig::new(&config);
    for n in 0..flows {
        rig.out(&data(0x1_0018 + n, 0x11 + n));
        rig.back(&back(0x1_0018 + n, 0x11 + n, 0x11));
        if n % 16 == 15 {
            rig.tick(TICK, 0);
        }
    }
    for _ in 0..10 {
        for n in 0..flows {
            rig.out(&data(0x1_0018 + n, 0x11 + n));
        }
        rig.tick(TICK, 0);
    }
    for n in 0..flows {
        rig.out(&data(0x1_0018 + n, 0x11 + n));
        rig.back(&back(0x1_0018 + n, 0x11 + n, 0x11));
    }
    rig.now += TICK;
    let status = rig.core.status();
    let counts = || {
        [
            status.records.get(),
            status.flows_read.get(),
            status.cnps_sent(),
        ]
    };
    let (before, request) = (counts(), Cell::new(0));
    let clock = || {
        request.set(request.get() + 1);
        rig.now + Nanos::from_micros(request.get())
    };
    let mut out = |_: CnpRequest| Ok(());
    rig.core
        .run_call_within(rig.now, &clock, |_, _| depth, &mut out);
    let [records, read, sent] = counts();
    let [a, b, c] = before;
    [records - a, read - b, sent - c, request.get()]
}

#[test]
fn a_tick_ends_in_time_whatever_there_is_to_do() {
    let together = TOGETHER as u64;
    // 60 us; a batch of records or readings each microsecond, half of the time for records.
    let [records, read, sent, request] = spent(4_000, 700_000);
    assert!(records > 0 && records <= 30 * together, "{records}");
    assert!(read > 64 && read <= 60 * together, "{read}");
    assert!(sent > 0 && sent <= 60 * together, "{sent}");
    assert!((55..=66).contains(&request), "{request}");
    // Above `hard` twice the time.
    let [.., request] = spent(4_000, 900_000);
    assert!((115..=126).contains(&request), "{request}");
    // With little to do it ends when that is done.
    let [records, read, sent, request] = spent(20, 900_000);
    assert!(
        request < 20 && sent == 20 && read >= 20,
        "{records} {read} {request}"
    );
}
