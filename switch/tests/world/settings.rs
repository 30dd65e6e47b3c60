//! Paces of the switch's threads, and delays of the links: what a slow machine and a long cable change.

use super::{LOOK, World};

/// Pace of a worker.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time of a turn that moves nothing, and of each frame that one moves, in ns.
    pub turn: u64,
    pub frame: u64,
    /// Time until which it gets no turn.
    pub away_until: u64,
}

/// Control core.
#[derive(Debug, Clone, Copy)]
pub struct ControlPace {
    pub away_until: u64,
    /// Time between two looks at its alarms, while no call is due.
    pub look: u64,
}

/// Link of a port.
#[derive(Debug, Clone, Copy)]
pub struct LinkPace {
    /// Time from the last bit sent to the same bit received.
    pub delay: u64,
    /// Latest arrival at the host and at the switch: a wire keeps the order also while its delay changes.
    pub last: [u64; 2],
}

impl LinkPace {
    /// Time at which what leaves at `at` arrives, at the host (0) or the switch (1).
    pub fn arrival(&mut self, end: usize, at: u64) -> u64 {
        self.last[end] = self.last[end].max(at + self.delay);
        self.last[end]
    }
}

/// All settings. They may change at any time.
#[derive(Debug, Clone)]
pub struct Settings {
    pub workers: Vec<Pace>,
    pub control: ControlPace,
    pub links: Vec<LinkPace>,
}

impl Settings {
    pub fn new(workers: usize, ports: usize) -> Settings {
        let pace = Pace {
            turn: 1_000,
            frame: 60,
            away_until: 0,
        };
        Settings {
            workers: vec![pace; workers],
            control: ControlPace {
                away_until: 0,
                look: LOOK,
            },
            links: vec![
                LinkPace {
                    delay: 500,
                    last: [0; 2]
                };
                ports
            ],
        }
    }
}

impl World {
    /// Gives a worker no turn for a time.
    pub fn stall_worker(&mut self, worker: usize, time: u64) {
        self.settings.workers[worker].away_until = self.now + time;
    }

    /// Lets all threads take so long for a turn that moves nothing: seconds without load pass sooner.
    pub fn pace(&mut self, turn: u64) {
        self.settings.control.look = turn.max(LOOK);
        for pace in &mut self.settings.workers {
            pace.turn = turn;
        }
    }

    /// Gives the control core no turn for a time.
    pub fn stall_control(&mut self, time: u64) {
        self.settings.control.away_until = self.now + time;
    }

    /// Lets each reading of the control core's clock take so long: a core of which it has a share.
    pub fn slow_control(&mut self, cost: u64) {
        self.control.clock.cost = cost;
    }
}
