//! Applications over the simulated connections: their messages become packets of queue pairs, and what arrives moves them on.

use npcc_pipeline::units::Nanos;

use super::Engine;
use super::event::Event;
use super::flow::Carried;
use crate::app::{Action, ApplicationOutcome, Moment, Running};
use crate::num::small;

/// An application and its place among the engine's connections.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) running: Running,
    /// Connection of the first queue pair; those of one pair of hosts stand together.
    pub(crate) first: usize,
    /// Host of each place of the job.
    pub(crate) hosts: Vec<u32>,
    pub(crate) roofline: Nanos,
}

impl Engine {
    /// Lets an application go on at a time that it requested.
    pub(super) fn goes_on(&mut self, application: u32, moment: Moment) {
        let now = self.now;
        self.advance(application, |running, out| {
            running.happens(moment, now, out)
        });
    }

    /// Gives the application an event, and does what it answers.
    fn advance(&mut self, application: u32, event: impl FnOnce(&mut Running, &mut Vec<Action>)) {
        let mut actions = Vec::new();
        let placed = &mut self.applications[application as usize];
        event(&mut placed.running, &mut actions);
        let (first, pairs) = (placed.first, placed.running.pace.queue_pairs as usize);
        for action in actions {
            match action {
                Action::At(time, moment) => {
                    self.queue.at(time, Event::Application(application, moment));
                }
                Action::Send(message) => {
                    let index =
                        first + message.connection as usize * pairs + message.queue_pair as usize;
                    let flow = &mut self.flows[index];
                    let packets = message.bytes.div_ceil(flow.mtu as u64).max(1);
                    let begins = flow.tx.limit();
                    flow.carries.push_back(Carried {
                        application,
                        message,
                        begins,
                        ends: begins + packets,
                    });
                    self.wants(index, packets);
                }
            }
        }
    }

    /// Tells the application of the messages of a connection that have arrived whole.
    pub(super) fn carried_arrives(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            let Some(carried) = flow.carries.get(flow.arrived).copied() else {
                return;
            };
            if carried.ends > flow.rx.expected() {
                return;
            }
            flow.arrived += 1;
            flow.short += carried.short(flow.mtu as u64);
            self.advance(carried.application, |running, out| {
                running.arrived(&carried.message, now, out);
            });
        }
    }

    /// Tells the application of the messages of a connection that are acknowledged.
    pub(super) fn carried_is_acknowledged(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            let acked = flow.tx.acked();
            let Some(carried) = flow.carries.front().copied() else {
                return;
            };
            if carried.ends > acked {
                return;
            }
            flow.carries.pop_front();
            flow.arrived -= 1;
            self.advance(carried.application, |running, out| {
                running.acknowledged(&carried.message, now, out);
            });
        }
    }

    /// Schedules the first step of each rank of each application.
    pub(super) fn join_applications(&mut self, rng: &mut crate::rng::Rng) {
        let jitter = self.scenario.start_jitter.map_or(200, |time| time.0);
        for application in 0..self.applications.len() {
            let ranks = self.applications[application]
                .running
                .job
                .graph
                .ranks()
                .len();
            let begins = self.start + self.scenario.applications[application].start;
            for rank in 0..small(ranks as u64) {
                let at = begins + Nanos(rng.below(jitter));
                let application = small(application as u64);
                self.queue
                    .at(at, Event::Application(application, Moment::Join(rank)));
            }
        }
    }

    /// Returns the outcome of each application.
    pub(super) fn application_outcomes(&self) -> Vec<ApplicationOutcome> {
        let all = self.applications.iter().zip(&self.scenario.applications);
        let outcome = |(placed, given): (&Placed, &crate::scenario::Application)| {
            let running = &placed.running;
            let mut steps = running.times.clone();
            steps.sort_unstable();
            ApplicationOutcome {
                name: given.name.clone(),
                steps,
                unfinished: running.unfinished(self.now),
                roofline: placed.roofline,
                gap: given.gap,
                bus: running.job.bus,
            }
        };
        all.map(outcome).collect()
    }
}
