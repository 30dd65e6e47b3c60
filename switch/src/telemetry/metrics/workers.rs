//! Metrics of workers, by core.

use std::fmt;

use super::family::{Samples, families};
use super::scrape::{Scrape, seconds};
use crate::report::model::Worker;
use crate::worker::stages::Stage;

/// A counter of each worker.
fn counts(all: &Scrape, to: &mut Samples<'_>, of: fn(&Worker) -> u64) -> fmt::Result {
    let mut workers = all.snapshot.workers.iter();
    workers.try_for_each(|worker| to.count(&[("core", &worker.core.to_string())], of(worker)))
}

families! {
    "npcc_worker_turns" Counter "Turns of the worker's loop." |all, to|
        counts(all, to, |worker| worker.loops);
    "npcc_worker_busy_turns" Counter "Turns of the worker's loop in which a frame moved." |all, to|
        counts(all, to, |worker| worker.busy);
    "npcc_worker_turn_longest_seconds" Gauge "Longest turn of the worker's loop since watermarks were cleared." |all, to| {
        let mut workers = all.snapshot.workers.iter();
        workers.try_for_each(|worker| {
            to.real(&[("core", &worker.core.to_string())], seconds(worker.longest_ns))
        })
    };
    "npcc_worker_bursts" Counter "Bursts received." |all, to|
        counts(all, to, |worker| worker.bursts.received);
    "npcc_worker_runs" Counter "Runs that bursts were made of: frames with one egress port, priority and ingress group." |all, to|
        counts(all, to, |worker| worker.bursts.runs);
    "npcc_worker_bypasses" Counter "Times a port sent past its queues." |all, to|
        counts(all, to, |worker| worker.bursts.bypassed);
    "npcc_worker_handed_over_frames" Counter "Frames handed over to the workers that own their egress ports." |all, to|
        counts(all, to, |worker| worker.crossing.handed_over);
    "npcc_worker_taken_over_frames" Counter "Frames taken over from other workers." |all, to|
        counts(all, to, |worker| worker.crossing.taken_over);
    "npcc_worker_stalls" Counter "Turns in which a receive queue was not polled, as a full ring to another worker held frames back." |all, to|
        counts(all, to, |worker| worker.crossing.stalls);
    "npcc_worker_lost_cnps" Counter "CNPs lost because the pool or the buffer was empty." |all, to|
        counts(all, to, |worker| worker.cnp_lost);
    "npcc_worker_naps" Counter "Times the worker slept." |all, to|
        counts(all, to, |worker| worker.naps);
    "npcc_worker_wakes" Counter "Times something woke the worker: a frame, or another thread with work for it." |all, to|
        counts(all, to, |worker| worker.woken);
    "npcc_worker_slept_seconds" Counter "Time the worker slept." |all, to| {
        let mut workers = all.snapshot.workers.iter();
        workers.try_for_each(|worker| {
            to.count_seconds(&[("core", &worker.core.to_string())], seconds(worker.counts.slept_ns))
        })
    };
    "npcc_worker_timed_frames" Counter "Frames received in turns that were timed: one busy turn in 64." |all, to|
        counts(all, to, |worker| worker.timed_frames);
    "npcc_worker_timed_cycles" Counter "Cycles of the turns that were timed, by stage; divided by the timed frames, what a frame costs." |all, to| {
        for worker in &all.snapshot.workers {
            let core = worker.core.to_string();
            for (stage, cycles) in Stage::ALL.map(Stage::name).into_iter().zip(worker.counts.stages.cycles) {
                to.count(&[("core", &core), ("stage", stage)], cycles)?;
            }
        }
        Ok(())
    };
}
