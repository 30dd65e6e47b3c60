//! The thread that saves what outlives the process: counters, pairs and pause storms. First it gives the control core the pairs that the
//! previous process knew.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::manage::management::Management;
use crate::saved::EVERY;
use crate::saved::storms::as_written;
use npcc_engine::fault;
use npcc_engine::log::note;
use npcc_engine::threads::Heartbeat;

/// Pairs given to the control core at a time: it takes a few dozen a tick.
const AT_ONCE: usize = 8_192;
/// Interval at which the request to stop is polled.
const LOOK: Duration = Duration::from_millis(10);

/// Runs until the switch stops; gives no pairs before `ready`.
pub(super) fn run(management: &Management, ready: &AtomicBool, heartbeat: &Heartbeat) {
    while !ready.load(Ordering::Relaxed) && heartbeat.goes_on() {
        std::thread::sleep(LOOK);
    }
    suggest(management, heartbeat);
    let mut due = Instant::now();
    while heartbeat.goes_on() {
        std::thread::sleep(LOOK);
        fault::waits("keeping-stuck");
        if Instant::now() < due {
            continue;
        }
        // Taking a snapshot saves the counters.
        drop(management.view.snapshot());
        let saved = &management.view.saved;
        if saved.keeps_pairs() {
            saved.leave_pairs(&management.view.flows);
        }
        let storms = management.view.storms();
        saved.change(|facts| facts.storms = as_written(storms, &facts.storms));
        due = Instant::now() + EVERY;
    }
}

/// Gives the control core the pairs that the previous process knew; packets have to confirm each.
fn suggest(management: &Management, heartbeat: &Heartbeat) {
    let pairs = management.view.saved.take_pairs();
    for some in pairs.chunks(AT_ONCE) {
        if !heartbeat.goes_on() {
            return;
        }
        if let Err(why) = management.suggest_pairs(some) {
            note(&format!(
                "note: some of the {} pairs that were known before the start are forgotten: {why}",
                pairs.len()
            ));
            return;
        }
    }
    if !pairs.is_empty() {
        note(&format!(
            "{} pairs were known before the start; packets have to confirm each",
            pairs.len()
        ));
    }
}
