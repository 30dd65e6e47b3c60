//! The thread that writes down what outlives the process: counters, pairs, ends and pause storms, and first gives the control core the
//! pairs and ends that the process before knew.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use npcc_cnp::pair::loose_end::LooseEnd;
use npcc_pipeline::counters::Counter;
use rtrb::Consumer;

use crate::fault;
use crate::keep::EVERY;
use crate::keep::storms::as_written;
use crate::log::note;
use crate::manage::orders::Management;

/// Pairs given to the control core at a time: it takes a few dozen a tick.
const AT_ONCE: usize = 8_192;
/// How often `stop` is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs until `stop`; nothing is given before `ready`.
pub(super) fn run(
    management: &Management,
    (ready, stop): (&AtomicBool, &AtomicBool),
    (mut loose, turns): (Option<Consumer<LooseEnd>>, &Counter),
    core: Option<core_affinity::CoreId>,
) {
    if let Some(core) = core {
        // Not being moved costs some reaction time and nothing else.
        let _ = core_affinity::set_for_current(core);
    }
    let goes_on = || {
        turns.add(1);
        !stop.load(Ordering::Relaxed)
    };
    while !ready.load(Ordering::Relaxed) && goes_on() {
        std::thread::sleep(LOOK);
    }
    recall(management);
    suggest(management, &goes_on);
    let mut due = Instant::now();
    while goes_on() {
        std::thread::sleep(LOOK);
        fault::waits("keeping-stuck");
        let shown = loose.as_mut().into_iter();
        let shown = shown.flat_map(|ring| std::iter::from_fn(move || ring.pop().ok()));
        let view = &management.view;
        view.keep.leave_ends(shown, view.clock.now());
        if Instant::now() < due {
            continue;
        }
        // To look is to write down.
        drop(management.view.snapshot());
        let keep = &management.view.keep;
        if keep.keeps_pairs() {
            keep.leave_pairs(&management.view.flows);
        }
        let storms = management.view.storms();
        keep.change(|facts| facts.storms = as_written(storms, &facts.storms));
        due = Instant::now() + EVERY;
    }
}

/// Gives the control core the ends that the process before had learned and not paired: first of all, as they are soon of no use.
fn recall(management: &Management) {
    let ends = management.view.keep.take_ends();
    for some in ends.chunks(AT_ONCE) {
        if let Err(why) = management.npcc_ends(some) {
            return note(&format!(
                "note: ends that were known before the start are forgotten: {why}"
            ));
        }
    }
    if !ends.is_empty() {
        note(&format!(
            "{} ends were known before the start and not paired: packets may pair them",
            ends.len()
        ));
    }
}

/// Gives the control core the pairs that the process before knew; packets have to confirm each.
fn suggest(management: &Management, goes_on: &impl Fn() -> bool) {
    let pairs = management.view.keep.take_pairs();
    let mut given = 0;
    for some in pairs.chunks(AT_ONCE) {
        if !goes_on() {
            return;
        }
        if let Err(why) = management.npcc_pairs(some, true) {
            note(&format!(
                "note: of {} pairs that were known before the start {given} wait for packets that confirm them, the others are forgotten: {why}",
                pairs.len()
            ));
            return;
        }
        given += some.len();
    }
    if given > 0 {
        note(&format!(
            "{given} pairs were known before the start; packets have to confirm each"
        ));
    }
}
