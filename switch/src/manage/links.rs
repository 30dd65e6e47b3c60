//! Link states of the ports: polled every ten milliseconds, and applied. Where the card has an interface of the kernel beside DPDK, its
//! [`carrier`](super::carrier) is polled, and the driver once a second. Of packet sockets, whose driver always reports a link, the kernel's
//! messages about the interface count as well.
//!
//! A link-state interrupt would be faster, and is not used: with it DPDK answers from the state at the last interrupt, and several drivers
//! lose interrupts, which would leave a dead link up for ever.
//!
//! Law: the routes pass over a link that goes down at once, whatever else is going on, and frames queued for it are dropped. A link that
//! comes up gets the settings of its present speed before the first frame is accepted.

use std::sync::PoisonError;
use std::time::{Instant, SystemTime};

use npcc_api::events::Kind;
use npcc_api::protocol::ApiError;
use npcc_config::Config;
use npcc_linux::netlink::interface::State;
use npcc_pipeline::units::{BitRate, PortId};

use super::link_state::{DownReason, LinkReport, LinkState};
use super::management::{Live, Management};
use crate::apply::running::RunningState;
use crate::wiring::pfc::{PfcState, marks_in_time};
use crate::wiring::speeds::{self, Speeds};

impl Management {
    /// Polls all links and applies changes; called every few milliseconds.
    pub fn poll_links(&self) {
        for index in 0..self.view.ports.len() {
            self.poll_link(index);
        }
    }

    /// Gives the control core what it did not take of a link's change, once it has ticked again; see [`RunningState::catch_up`].
    pub fn catch_up(&self, tried: &mut u64) {
        // A change that is under way gives it that too.
        let Ok(mut live) = self.live.try_lock() else {
            return;
        };
        let Live { running, routes } = &mut *live;
        let ticks = (self.view.npcc.ticks.get(), tried);
        running.catch_up(ticks, &self.links(), &mut self.targets(routes));
    }

    fn reported(&self, index: usize, state: &LinkState) -> Option<LinkReport> {
        if !state.has_interface {
            return Some(LinkReport::down(DownReason::Device));
        }
        if !state.admin_up {
            return Some(LinkReport::down(DownReason::Admin));
        }
        let facts = self.view.ports.get(index)?;
        if facts.port.is_wanted_back() {
            return Some(LinkReport::down(DownReason::Device));
        }
        if let Some(interface) = &facts.interface {
            let mut interface = interface.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = down_by(interface.state()) {
                return Some(LinkReport::down(reason));
            }
        }
        let driver = || match facts.port.link() {
            Ok(link) if link.up => LinkReport {
                up: true,
                mbps: link.speed_mbps,
                reason: DownReason::None,
            },
            Ok(_) => LinkReport::down(DownReason::Link),
            Err(_) => LinkReport::down(DownReason::Device),
        };
        Some(match &facts.carrier {
            Some(carrier) => {
                let mut carrier = carrier.lock().unwrap_or_else(PoisonError::into_inner);
                carrier.report(Instant::now(), driver)
            }
            None => driver(),
        })
    }

    pub(super) fn poll_link(&self, index: usize) {
        let Some(state) = self.view.links.get(index) else {
            return;
        };
        let Some(reported) = self.reported(index, &state) else {
            return;
        };
        if !reported.up {
            if !state.up {
                let gone = reported.reason == DownReason::Device && state.reason != reported.reason;
                if let Some(state) = self.view.links.lock().get_mut(index) {
                    state.reason = reported.reason;
                }
                if gone {
                    self.view.link_event(index, gone_kind(&state), 0);
                }
                if state.receives == state.admin_up {
                    return;
                }
            }
            self.down.set(port_id(index), true);
        }
        // A reload that is under way ends first.
        let Ok(mut live) = self.live.lock() else {
            return;
        };
        let Live { running, routes } = &mut *live;
        let mut links = self.links();
        if let Some(link) = links.get_mut(index) {
            link.up = reported.up;
            link.mbps = reported.mbps.or_else(|| link.mbps.filter(|_| !reported.up));
        }
        let config = &running.in_force().config;
        let plans = config.ports.get(index).zip(links.get(index));
        let Some(speeds) = plans.map(|(resolved, link)| speeds::of(resolved, link.mbps)) else {
            return;
        };
        if reported.up && state.up && state.receives && speeds == state.speeds {
            return;
        }
        let mut targets = self.targets(routes);
        // If a worker timed out, the next poll tries again.
        let mut events = Vec::new();
        let applied = running.apply_links(&links, &mut targets).is_ok();
        if applied && (reported.up || state.up) {
            events = self.publish_link(index, reported, &state, running);
        }
        // Events are noted and logged once others may change something again.
        drop(live);
        for (kind, mbps) in events {
            self.view.link_event(index, kind, mbps);
        }
    }

    /// Publishes that a link came up, went down, or changed its speed. Returns the events of that, each with the link's speed in Mb/s.
    fn publish_link(
        &self,
        index: usize,
        reported: LinkReport,
        before: &LinkState,
        running: &RunningState,
    ) -> Vec<(Kind, u64)> {
        let now = running.current();
        if reported.up {
            // A link that is shown as up has its flows.
            self.down.set(port_id(index), false);
        }
        if let Some(state) = self.view.links.lock().get_mut(index) {
            if reported.up != before.up {
                state.since = SystemTime::now();
            }
            state.flaps += u64::from(!reported.up);
            (state.up, state.reason) = (reported.up, reported.reason);
        }
        if !reported.up {
            let gone = (reported.reason == DownReason::Device).then_some((gone_kind(before), 0));
            return std::iter::once((Kind::LinkDown, 0)).chain(gone).collect();
        }
        let speeds: Vec<Speeds> = now.ports.iter().map(|port| port.speeds).collect();
        came_up(&running.in_force().config, &speeds, &now.pfc, index)
    }

    /// Takes a port up or down for the operator. The device's link follows where the driver can, so that the peer sees it.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub fn set_admin(&self, name: &str, up: bool) -> Result<(), ApiError> {
        let index = self.view.ports.iter().position(|port| port.name == name);
        let index = index.ok_or_else(|| self.no_port(name))?;
        if let Some(state) = self.view.links.lock().get_mut(index) {
            state.admin_up = up;
        }
        if let Some(facts) = self.view.ports.get(index) {
            // With a driver that cannot, the peer sees no change; no frames pass all the same.
            let _ = facts.port.set_link(up);
        }
        self.poll_link(index);
        Ok(())
    }
}

/// Returns the events of a link that came up, at the speeds that the ports have now.
fn came_up(config: &Config, speeds: &[Speeds], pfc: &[PfcState], index: usize) -> Vec<(Kind, u64)> {
    let links: Vec<BitRate> = speeds.iter().map(|port| port.link).collect();
    let shapers: Vec<_> = speeds.iter().map(|port| port.shaper).collect();
    let late = marks_in_time(config, &links, &shapers, pfc).is_err();
    let mbps = links.get(index).map_or(0, |link| link.0 / 1_000_000);
    let late = late.then_some((Kind::MarkingLate, 0));
    late.into_iter().chain([(Kind::LinkUp, mbps)]).collect()
}

/// Returns the kind of the event that a port is down for its device.
const fn gone_kind(state: &LinkState) -> Kind {
    if state.has_interface {
        Kind::DeviceGone
    } else {
        Kind::InterfaceGone
    }
}

/// Returns the reason for which an interface in this state leaves its port down.
const fn down_by(interface: State) -> Option<DownReason> {
    match interface {
        State::Up => None,
        State::Down => Some(DownReason::Link),
        State::Gone => Some(DownReason::Device),
    }
}

fn port_id(index: usize) -> PortId {
    PortId(u8::try_from(index).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiring::live_tests::{config, paused};

    #[test]
    fn a_link_that_comes_up_too_fast_for_its_marks_is_an_event() {
        let config = config("buffer: { pool: 32MB }\n");
        let events = |mbps: [u32; 2]| {
            let ports = config.ports.iter().zip(mbps);
            let speeds: Vec<_> = ports
                .map(|(port, mbps)| speeds::of(port, Some(mbps)))
                .collect();
            came_up(&config, &speeds, &[paused(), paused()], 1)
        };
        assert_eq!(events([25_000; 2]), [(Kind::LinkUp, 25_000)]);
        let late = [(Kind::MarkingLate, 0), (Kind::LinkUp, 400_000)];
        assert_eq!(events([400_000; 2]), late);
    }
}
