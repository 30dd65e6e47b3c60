//! Plan of a run's faults, made from its seed: each kind is left out of half of the plans, so that some runs see one kind alone and others
//! many together.

use npcc_appliance::apply::running::RunningState;

use super::packets::{self, WRITE_ONLY};
use super::{MS, Traffic, US, World, config, sometimes};

npcc_pipeline::named! {
    /// Kind of fault.
    pub enum Kind {
        /// The far host pauses the switch for a while.
        Pause = "pause",
        /// A link goes down and comes back.
        Flap = "flap",
        /// Requests of the connection manager that nobody answers.
        Flood = "flood",
        /// Another configuration.
        Reload = "reload",
        /// Frames that are cut, or with octets changed.
        Forged = "forged",
        /// The control core gets no turn.
        Starved = "starved",
        /// A worker gets no turn for longer than `buffer.loop_time`.
        Slow = "slow",
        /// The pool has few buffers left.
        Exhausted = "exhausted",
        /// A host sends on in spite of pauses.
        Disobeys = "disobeys",
        /// A device takes no frames.
        Stuck = "stuck",
        /// A link takes longer.
        Late = "late",
        /// The switch is killed, and another begins with what it left.
        Restart = "restart",
    }
}

/// Fault that strikes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// True if it begins; false if it ends.
    pub begins: bool,
    /// Port, worker or variant, as the kind needs.
    pub place: usize,
    pub time: u64,
}

/// Time of the first faults, and of the last.
const FIRST: u64 = MS / 5;
const LAST: u64 = 2 * MS;
/// Time at which all faults are over.
pub const OVER: u64 = 3 * MS;

/// Kinds that may cost a lossless frame.
const COSTLY: [Kind; 9] = [
    Kind::Flap,
    Kind::Flood,
    Kind::Forged,
    Kind::Slow,
    Kind::Exhausted,
    Kind::Disobeys,
    Kind::Late,
    Kind::Stuck,
    Kind::Restart,
];

/// Plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// True if no lossless frame may be lost: peers obey, links stay up, and the switch gets its turns and its memory.
    pub gentle: bool,
    pub kinds: Vec<Kind>,
    pub faults: Vec<(u64, Fault)>,
    pub traffic: Vec<Traffic>,
}

impl Plan {
    /// Draws a plan from the world's chance. Half of the plans have no kind that may cost a lossless frame, and no short frames.
    pub fn draw(world: &mut World) -> Plan {
        let gentle = world.chance(2) == 0;
        let mut kinds = Vec::new();
        for kind in Kind::ALL {
            if world.chance(2) == 0 && !(gentle && COSTLY.contains(&kind)) {
                kinds.push(kind);
            }
        }
        let mut faults = Vec::new();
        for kind in &kinds {
            for _ in 0..=world.chance(3) {
                let at = world.now + FIRST + world.chance(LAST - FIRST);
                let place = world.chance(6) as usize;
                let time = 20 * US + world.chance(400 * US);
                let fault = |begins| Fault {
                    kind: *kind,
                    begins,
                    place,
                    time,
                };
                faults.push((at, fault(true)));
                faults.push((at + time, fault(false)));
            }
        }
        let mut traffic = Vec::new();
        for _ in 0..2 + world.chance(5) {
            let from = world.chance(3) as usize;
            let to = if from == 2 {
                world.chance(2) as usize
            } else {
                2
            };
            let short = if gentle { 1_024 } else { 64 };
            traffic.push(Traffic {
                from,
                to,
                len: [short, 1_024, 1_024, 1_280][world.chance(4) as usize],
                gap: 850 + world.chance(1_000),
                until: world.now + 2 * MS + world.chance(MS),
                managed: world.chance(2) == 0,
                answers: world.chance(2) == 0,
                ..Traffic::default()
            });
        }
        Plan {
            gentle,
            kinds,
            faults,
            traffic,
        }
    }

    /// Names of the kinds, for a failure.
    pub fn names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name()).collect()
    }
}

impl World {
    /// Puts the plan's faults and traffic into the world.
    pub fn carry_out(&mut self, plan: &Plan) {
        for (at, fault) in &plan.faults {
            self.plan(*at, super::Event::Fault(*fault));
        }
        for traffic in &plan.traffic {
            self.connect(*traffic);
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        let changes = matches!(fault.kind, Kind::Flap | Kind::Reload | Kind::Restart);
        if changes && self.running.is_none() {
            // Another change is under way.
            return self.deferred.push(fault);
        }
        let (port, begins) = (fault.place % 3, fault.begins);
        match fault.kind {
            Kind::Pause if begins => {
                self.pause(2, 1 << 3, fault.time);
                sometimes::seen("the switch was paused");
            }
            Kind::Flap => {
                let held = self.held();
                if self.links[port].up == begins {
                    self.set_link(port, !begins);
                    if begins && held > 0 {
                        sometimes::seen("a link went down with frames queued");
                    }
                }
            }
            Kind::Flood if begins => self.flood_of_requests((1, 3), 500_000, self.now + fault.time),
            Kind::Reload if begins => {
                let text = config::usual(["", "filter: 3, ", "cnp: { cap: 2% }, "][port]);
                if self.workers.len() == 2 {
                    if self.held() > 0 {
                        sometimes::seen("a reload while frames were queued");
                    }
                    self.reload(&text).unwrap();
                }
            }
            Kind::Forged if begins => self.forge(port, self.now + fault.time),
            Kind::Starved if begins => self.stall_control(fault.time),
            Kind::Slow if begins => {
                let workers = self.settings.workers.len();
                self.stall_worker(fault.place % workers, fault.time);
            }
            Kind::Exhausted => {
                self.pool.leave(begins.then_some(fault.place * 16));
            }
            Kind::Disobeys => {
                self.hosts[port].obeys = !begins;
            }
            Kind::Stuck => {
                if begins && self.held() > 0 {
                    sometimes::seen("a device was stuck with frames queued");
                }
                self.cards[port].borrow_mut().stuck = begins;
            }
            Kind::Late => {
                self.settings.links[port].delay = if begins { 50 * US } else { 500 };
            }
            Kind::Restart if begins => {
                if self.held() > 0 {
                    sometimes::seen("a restart while frames were queued");
                }
                self.save();
                self.restart(fault.time);
            }
            _ => {}
        }
    }

    /// Ends a change of the configuration or a restart; those that came meanwhile follow in their order.
    pub(super) fn resume(&mut self, running: RunningState) {
        self.running = Some(running);
        for fault in std::mem::take(&mut self.deferred) {
            self.plan(self.now, super::Event::Fault(fault));
        }
    }

    /// Lets the host at a port send a frame now, before its data.
    pub fn send(&mut self, port: usize, frame: Vec<u8>) {
        self.hosts[port].answers.push_back(frame);
        self.wake(port);
    }

    /// Lets a connection send at full speed from now to `until`, with one packet each `gap`.
    pub fn go_on(&mut self, flow: usize, gap: u64, until: u64) {
        let (now, flow) = (self.now, &mut self.flows[flow]);
        (flow.gap, flow.now_gap) = (gap, gap);
        (flow.next, flow.until) = (Some(now), until);
        let from = flow.from;
        self.wake(from);
    }

    /// Lets the host at a port send requests of the connection manager to another, each of another connection, that nobody answers.
    pub fn flood_of_requests(&mut self, (port, to): (usize, usize), per_second: u64, until: u64) {
        let way = self.hosts[port].way(self.hosts[to].address);
        let [a, b, c, _] = way.from.octets();
        let forge = move |number: u64| {
            let n = number as u32;
            let from = [a, b, c, 4 + (n % 200) as u8].into();
            packets::req(
                packets::Way { from, ..way },
                0x1000_0000 + n,
                0x10_0000 + n % 0x80_0000,
            )
        };
        self.flood(port, per_second, until, Box::new(forge));
    }

    /// Lets the host at a port send frames of connections that do not exist, with some octets changed, some of them cut.
    fn forge(&mut self, port: usize, until: u64) {
        let to = self.hosts[(port + 2) % 3].address;
        let way = self.hosts[port].way(to);
        let first = self.chance(1 << 32);
        let forge = move |number: u64| {
            let mut dice = npcc_pipeline::egress::rng::Xorshift::new(first ^ number);
            let qpn = 0x70_0000 + dice.next_u32() % 0x8_0000;
            let mut frame = packets::data(way, (qpn, 50_000), dice.next_u32(), 200);
            debug_assert_eq!(frame[42], WRITE_ONLY);
            for _ in 0..dice.next_u32() % 3 {
                let at = 12 + dice.next_u32() as usize % 30;
                frame[at] = dice.next_u32() as u8;
            }
            if dice.next_u32().is_multiple_of(8) {
                frame.truncate(14 + dice.next_u32() as usize % 60);
            }
            frame
        };
        self.flood(port, 300_000, until, Box::new(forge));
        sometimes::seen("forged frames");
    }
}
