//! Stage profiler of a worker: TSC cycles by stage of one busy turn in [`EACH`].
//!
//! Law: a turn that is not timed costs a comparison at each stamp, about half an instruction a frame of a full burst. A turn that took very
//! long was interrupted, and is not counted.

use npcc_dpdk::Tsc;
use npcc_pipeline::counters::{Stage, StageCounters};

/// Interval of timed turns: a power of two.
const EACH: u64 = 64;
/// Longest turn that counts, in cycles: 30 to 60 us. A longer one was interrupted.
const INTERRUPTED: u64 = 100_000;

/// Stage profiler of a worker.
#[derive(Debug, Default)]
pub struct Profiler {
    turns: u64,
    timed: bool,
    last: u64,
    cycles: [u64; Stage::COUNT],
}

impl Profiler {
    /// Begins a turn.
    #[inline]
    pub fn begin(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        self.timed = self.turns.is_multiple_of(EACH);
        if self.timed {
            self.cycles = [0; Stage::COUNT];
            self.last = Tsc::now_cycles();
        }
    }

    /// Ends a stage.
    #[inline]
    pub fn ends(&mut self, stage: Stage) {
        if self.timed {
            self.stamp(stage);
        }
    }

    #[cold]
    fn stamp(&mut self, stage: Stage) {
        let now = Tsc::now_cycles();
        if let Some(cycles) = self.cycles.get_mut(stage as usize) {
            *cycles += now.saturating_sub(self.last);
        }
        self.last = now;
    }

    /// Ends the turn, which received `frames`; a turn without any is not counted.
    #[inline]
    pub fn end(&mut self, frames: usize, counters: &StageCounters) {
        if self.timed {
            self.stamp(Stage::Other);
            self.count(frames, counters);
        }
    }

    #[cold]
    fn count(&self, frames: usize, counters: &StageCounters) {
        if frames == 0 || self.cycles.iter().sum::<u64>() > INTERRUPTED {
            return;
        }
        for (total, cycles) in counters.cycles.iter().zip(self.cycles) {
            total.add(cycles);
        }
        counters.frames.add(frames as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_interrupted_is_not_counted() {
        for (cycles, frames) in [(INTERRUPTED, 8), (INTERRUPTED + 1, 0)] {
            let counters = StageCounters::default();
            let mut profiler = Profiler::default();
            profiler.cycles[Stage::Parse as usize] = cycles;
            profiler.count(8, &counters);
            assert_eq!(counters.frames.get(), frames);
        }
    }

    #[test]
    fn one_turn_in_many_is_counted_and_only_with_frames() {
        let (mut profiler, counters) = (Profiler::default(), StageCounters::default());
        for turn in 0..EACH * 4 {
            profiler.begin();
            profiler.ends(Stage::Receive);
            profiler.ends(Stage::Parse);
            profiler.ends(Stage::Enqueue);
            // The second timed turn moves no frame.
            profiler.end(
                if !(EACH..EACH * 2).contains(&turn) {
                    8
                } else {
                    0
                },
                &counters,
            );
        }
        let frames = counters.frames.get();
        assert!(
            frames > 0 && frames <= 24 && frames.is_multiple_of(8),
            "{frames}"
        );
        let of = |stage: Stage| counters.cycles[stage as usize].get();
        assert!(of(Stage::Receive) > 0 && of(Stage::Other) > 0);
        assert_eq!(of(Stage::Schedule), 0);
    }
}
