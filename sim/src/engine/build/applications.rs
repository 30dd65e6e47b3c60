//! Connections of the applications: those that their graphs use, and no others.

use npcc_pipeline::units::Nanos;

use super::{BuildError, Engine, FlowGroup};
use crate::app::{Hop, Pace, Path, Running, roofline};
use crate::engine::application::Placed;
use crate::scenario::{Application, Case, Verb};

impl Engine {
    /// Adds the applications and their connections; `members` are the hosts of each group.
    ///
    /// # Errors
    /// When an application has no graph.
    pub(super) fn add_applications(
        &mut self,
        case: &Case,
        members: &[Vec<u32>],
        homes: &[(u32, u8)],
    ) -> Result<(), BuildError> {
        let scenario = self.scenario.clone();
        for application in &scenario.applications {
            let hosts = |names: &[String]| -> Vec<u32> {
                let all = application.hosts(&scenario, names);
                all.into_iter()
                    .map(|(group, host)| members[group][host as usize])
                    .collect()
            };
            let (ranks, peers) = (hosts(&application.ranks), hosts(&application.to));
            let count = |hosts: &[u32]| crate::num::small(hosts.len() as u64);
            let job = application
                .job(count(&ranks), count(&peers))
                .map_err(|what| BuildError::Application(application.name.clone(), what))?;
            let hosts: Vec<u32> = ranks.into_iter().chain(peers).collect();
            let queue_pairs = case.qps.unwrap_or(application.queue_pairs);
            let pace = Pace {
                gap: application.gap,
                steps: application.steps,
                barrier: application.barrier,
                queue_pairs,
                in_flight: application.in_flight,
            };
            let running = Running::new(job, pace);
            let (first, number) = (self.flows.len(), self.groups.len());
            self.groups.push(application.name.clone());
            self.record.bursts.push(Vec::new());
            self.record.ideals.push(None);
            let group = group(application);
            for (from, to) in running.pairs() {
                for _ in 0..queue_pairs {
                    let (src, dst) = (hosts[from as usize], hosts[to as usize]);
                    self.add_flow(number, &group, src, dst, homes);
                }
            }
            self.applications.push(Placed {
                running,
                first,
                hosts,
                roofline: Nanos(0),
            });
        }
        Ok(())
    }

    /// Returns the start of the application whose connections are of this group.
    pub(super) fn application_start(&self, group: usize) -> Nanos {
        let place = group.checked_sub(self.scenario.flows.len());
        let given = place.and_then(|place| self.scenario.applications.get(place));
        given.map_or(Nanos(0), |given| given.start)
    }

    /// Computes the rooflines, when routes are known.
    pub(super) fn find_rooflines(&mut self, homes: &[(u32, u8)]) {
        for index in 0..self.applications.len() {
            let hosts = &self.applications[index].hosts;
            let path = |from: u32, to: u32| -> Path {
                let (src, dst) = (hosts[from as usize], hosts[to as usize]);
                let ports = self.egress_ports(src, dst, homes);
                let hop = |link: usize| Hop {
                    link,
                    fs_per_byte: self.links[link].fs_per_byte(),
                    delay: self.links[link].delay(),
                };
                self.links_from(src, &ports).map(hop).collect()
            };
            let running = &self.applications[index].running;
            let time = roofline(
                &running.job,
                (running.pace.gap, running.pace.barrier),
                self.scenario.mtu,
                &path,
            );
            self.applications[index].roofline = time;
        }
    }
}

/// Returns the flow group that an application's connections are of.
fn group(application: &Application) -> FlowGroup {
    FlowGroup {
        name: Some(application.name.clone()),
        from: String::new(),
        to: String::new(),
        qps: application.queue_pairs,
        verb: Verb::Write,
        message: application.chunk,
        burst: None,
        every: None,
        start: application.start,
        spread: Nanos(0),
        stop: None,
        window: None,
        priority: Application::PRIORITY,
        ect: true,
    }
}
