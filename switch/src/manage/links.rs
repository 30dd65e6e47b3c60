//! The ports' links: followed by asking, ten milliseconds apart, and carried out.
//!
//! A link-state interrupt would be sooner, and is not used: with it DPDK answers from what the last interrupt said, and
//! several drivers lose interrupts, which would leave a dead link up for ever.
//!
//! Law: a link that goes down is passed over by the routes at once, whatever else is going on; what waits for it is dropped;
//! a link that comes up gets the settings of the speed it has now before the first frame is let in.

use std::time::SystemTime;

use npcc_cnp::control::command::Command as NpccCommand;
use npcc_pipeline::units::{BitRate, PortId};

use super::link_state::{DownReason, LinkState};
use super::orders::Management;
use crate::report::events::Kind;
use crate::wiring;
use crate::wiring::pfc::PortFlow;
use crate::wiring::speeds;
use crate::worker::command::{Command, Deaf, LinkSettings};

/// What a device says of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    up: bool,
    mbps: Option<u32>,
    reason: DownReason,
}

impl Management {
    /// Looks at all links and carries out what changed; every few milliseconds.
    pub fn look_at_links(&self) {
        for index in 0..self.view.ports.len() {
            self.look_at_link(index);
        }
    }

    fn said(&self, index: usize, admin_up: bool) -> Option<Said> {
        let down = |reason| Said {
            up: false,
            mbps: None,
            reason,
        };
        if !admin_up {
            return Some(down(DownReason::Admin));
        }
        let facts = self.view.ports.get(index)?;
        if facts.port.is_wanted_back() {
            return Some(down(DownReason::Device));
        }
        Some(match facts.port.link() {
            Ok(link) if link.up => Said {
                up: true,
                mbps: link.speed_mbps,
                reason: DownReason::None,
            },
            Ok(_) => down(DownReason::Link),
            Err(_) => down(DownReason::Device),
        })
    }

    fn look_at_link(&self, index: usize) {
        let Some(state) = self.view.links.get(index) else {
            return;
        };
        let Some(said) = self.said(index, state.admin_up) else {
            return;
        };
        // Tried again at the next look where a worker does not listen.
        let _ = if said.up {
            self.link_is_up(index, said, &state)
        } else {
            self.link_is_down(index, said, &state)
        };
    }

    fn link_is_down(&self, index: usize, said: Said, state: &LinkState) -> Result<(), Deaf> {
        if !state.up {
            if let Some(state) = self.view.links.lock().get_mut(index) {
                state.reason = said.reason;
            }
            return Ok(());
        }
        let port = port_id(index);
        self.down.set(port, true);
        self.workers.give(&[Command::LinkDown { port }])?;
        if let Some(state) = self.view.links.lock().get_mut(index) {
            state.up = false;
            state.since = SystemTime::now();
            state.flaps += 1;
            state.reason = said.reason;
        }
        self.view.link_event(index, Kind::LinkDown, 0);
        Ok(())
    }

    fn link_is_up(&self, index: usize, said: Said, state: &LinkState) -> Result<(), Deaf> {
        // The running configuration first: a reload that is under way ends before.
        let Ok(live) = self.live.lock() else {
            return Ok(());
        };
        let config = &live.running.now.config;
        let Some(plan) = config.ports.get(index) else {
            return Ok(());
        };
        let speeds = speeds::of(plan, said.mbps);
        if state.up && speeds == state.speeds {
            return Ok(());
        }
        let port = port_id(index);
        let mut states = self.view.links.lock().clone();
        if let Some(state) = states.get_mut(index) {
            state.speeds = speeds;
        }
        let links: Vec<BitRate> = states.iter().map(|state| state.speeds.link).collect();
        let mut flows: Vec<PortFlow> = states.iter().map(|state| state.flow.clone()).collect();
        let buffer = wiring::pfc::buffer(config, &links, &mut flows);
        let shapers: Vec<_> = states.iter().map(|state| state.speeds.shaper).collect();
        if wiring::pfc::marks_in_time(config, &links, &shapers, &flows).is_err() {
            self.view.link_event(index, Kind::MarkingLate, 0);
        }
        let Some(facts) = self.view.ports.get(index) else {
            return Ok(());
        };
        let settings = LinkSettings {
            port: wiring::path::port(config, plan, facts.mac, speeds.shaper),
            link: speeds.link,
            outstanding: flows
                .get(index)
                .and_then(|flow| flow.outstanding)
                .unwrap_or(u64::MAX),
            buffer,
        };
        let settings = Box::new(settings);
        self.workers.give(&[Command::LinkUp { port, settings }])?;
        {
            let mut kept = self.view.links.lock();
            for (state, flow) in kept.iter_mut().zip(flows) {
                state.flow = flow;
            }
            if let Some(state) = kept.get_mut(index) {
                if !state.up {
                    state.since = SystemTime::now();
                }
                state.up = true;
                state.speeds = speeds;
                state.reason = DownReason::None;
            }
        }
        if let Ok(npcc) = self.npcc_settings(&live.running.now)
            && !npcc.queues.is_empty()
        {
            // It may be stopping: then nobody takes it.
            let _ = self.npcc.give(NpccCommand::Configure(Box::new(npcc)));
        }
        self.down.set(port, false);
        self.view
            .link_event(index, Kind::LinkUp, speeds.link.0 / 1_000_000);
        Ok(())
    }

    /// Takes a port up or down for the operator. The device's link goes with it where the driver can, so that the peer sees
    /// it.
    ///
    /// # Errors
    /// When there is no such port.
    pub fn set_admin(&self, name: &str, up: bool) -> Result<(), String> {
        let index = self.view.ports.iter().position(|port| port.name == name);
        let index = index.ok_or_else(|| {
            let names: Vec<&str> = self
                .view
                .ports
                .iter()
                .map(|port| port.name.as_str())
                .collect();
            format!(
                "there is no port `{name}`: write one of {}",
                names.join(", ")
            )
        })?;
        if let Some(state) = self.view.links.lock().get_mut(index) {
            state.admin_up = up;
        }
        if let Some(facts) = self.view.ports.get(index) {
            // A driver that cannot leaves the peer in the dark; here nothing passes all the same.
            let _ = facts.port.set_link(up);
        }
        self.look_at_link(index);
        Ok(())
    }
}

fn port_id(index: usize) -> PortId {
    PortId(u8::try_from(index).unwrap_or(u8::MAX))
}
