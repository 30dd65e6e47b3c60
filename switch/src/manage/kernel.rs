//! Linux beside the ports: carrier and admin state in both directions, addresses that come from Linux, and notes about it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use npcc_api::events::{Event, Kind};
use npcc_linux::netlink::handle::Notice;
use npcc_linux::netlink::report::Reason;
use npcc_pipeline::punt::{Place, PuntPort};
use npcc_pipeline::units::{Mac, PortId};

use super::management::Management;
use crate::wiring;
use crate::wiring::kernel::Kernel;
use npcc_engine::log::note;
use npcc_engine::worker::command::WorkerCommand;

impl Management {
    /// Applies Linux's notices about the ports, and reports link states to Linux; called every few milliseconds. Calls `turned` between
    /// notices, as a device may take a while over one. Does nothing where Linux is not integrated.
    pub fn look_at_linux(&self, turned: impl Fn()) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        while let Some(notice) = kernel.next() {
            self.heed(notice);
            turned();
        }
        if let Some(linux) = &self.view.linux {
            for claim in linux.claims.take() {
                let own = self.view.ports.get(claim.place.port.index());
                let macs = [own.map_or_else(Mac::default, |own| own.mac), claim.mac];
                self.view.neighbor_event(
                    claim.place.port.index(),
                    Kind::DuplicateAddress,
                    claim.address,
                    macs,
                );
            }
        }
        kernel.tell(&self.view.links.for_linux());
        let left_out = kernel.lines().left_out(Instant::now());
        for line in left_out {
            note(&format!("linux: {line}"));
        }
    }

    /// Has Linux asked for the ways of flows' packets, from time to time.
    pub fn look_up_flows(&self, now: Instant) {
        if let Some(kernel) = &self.kernel {
            kernel.look_up(&self.view.flows, now);
        }
    }

    /// Waits up to `patience` for the kernel's routes, so that the first frames find them; after that, frames are forwarded by the routes
    /// known so far.
    pub fn wait_for_linux(&self, patience: Duration, stop: &AtomicBool) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        let deadline = Instant::now() + patience;
        let is_over =
            || kernel.handle().status().compared.is_some() || stop.load(Ordering::Relaxed);
        let pause = || {
            std::thread::sleep(Duration::from_millis(1));
            Instant::now() < deadline
        };
        if !comes_in_time(is_over, pause) {
            note(
                "note: the kernel's routes take longer to be read: forwarding starts without them",
            );
        }
    }

    fn heed(&self, notice: Notice) {
        match notice {
            Notice::Admin(port, up) => {
                let name = self.view.ports.get(port.index());
                let state = self.view.links.get(port.index());
                if let (Some(facts), Some(state)) = (name, state)
                    && state.admin_up != up
                {
                    // The port exists: its name is from the same list.
                    let _ = self.set_admin(&facts.name, up);
                }
            }
            Notice::Addresses(port, interfaces, macs) => self.address(port, &interfaces, macs),
            Notice::Gone(port, vlan) => self.gone(port, vlan),
            Notice::Moved(port, moved) => {
                let kind = if moved.is_back {
                    Kind::DuplicateAddress
                } else {
                    Kind::NeighborMoved
                };
                let macs = [moved.from, moved.to];
                self.view
                    .neighbor_event(port.index(), kind, moved.address, macs);
            }
            Notice::Compared(report) => {
                for words in &report.set_back {
                    self.note_of_linux("settings that were set back", words);
                }
                // At the start every route is new, so differences mean nothing.
                if report.settled && report.differences > 0 && report.reason != Reason::Start {
                    let text = format!(
                        "{} differences between the kernel and what was known of it, mended: {}",
                        report.differences,
                        report.examples.join("; ")
                    );
                    self.note_of_linux("differences", &text);
                }
            }
            Notice::SetBack(port, detail) => self.view.note(Event {
                kind: Kind::LinuxSetBack,
                port,
                detail,
                ..Event::default()
            }),
            Notice::Differs(differing) => self.view.note(Event {
                kind: Kind::RouteDiffers,
                host: Some(differing.destination),
                detail: differing.words,
                ..Event::default()
            }),
            Notice::NoRoom(refused) => {
                self.note_of_linux("routes without room", &format!("no room: {refused}"));
            }
            Notice::Refused(refused) => {
                self.note_of_linux("requests that Linux refused", &refused.to_string());
            }
            // Said once in the life of the process, whatever was said before.
            Notice::Ended(error) => note(&format!(
                "linux: the kernel is not followed any more, restart the switch: {error}"
            )),
        }
    }

    /// Takes down a port whose interface is gone from Linux: nothing answers ARP for it any more. Of a VLAN's interface it says so.
    fn gone(&self, port: PortId, vlan: u16) {
        if vlan != 0 {
            let name = self.view.ports.get(port.index()).map(|facts| &*facts.name);
            self.note_of_linux("interfaces that are gone", &format!(
                "the interface of VLAN {vlan} of port {} is gone from Linux: restart the switch, which makes it again",
                name.unwrap_or_default()
            ));
            return;
        }
        if let Some(state) = self.view.links.lock().get_mut(port.index()) {
            state.has_interface = false;
        }
        self.poll_link(port.index());
    }

    /// Gives the workers the addresses Linux has on a port; a worker that timed out gets them with the next change.
    fn address(&self, port: PortId, interfaces: &[(u16, Vec<IpAddr>)], macs: Vec<(u16, Mac)>) {
        let Some(facts) = self.view.ports.get(port.index()) else {
            return;
        };
        let of = |(vlan, addresses): &(u16, Vec<IpAddr>)| {
            wiring::punt::interface(*vlan, facts.mac, addresses)
        };
        if let Some(linux) = &self.view.linux {
            for (vlan, addresses) in interfaces {
                let place = Place { port, vlan: *vlan };
                linux.claims.set_own(place, facts.mac, addresses.clone());
            }
        }
        let interfaces = interfaces.iter().map(of).collect();
        let interfaces = Box::new(PuntPort { interfaces, macs });
        if let Err(unresponsive) = self
            .workers
            .enqueue(&[WorkerCommand::PuntPort { port, interfaces }])
        {
            let text = format!("addresses of {}: {unresponsive}", facts.name);
            self.note_of_linux("addresses", &text);
        }
    }

    /// Logs a line about Linux, if there were not too many of its kind.
    fn note_of_linux(&self, kind: &'static str, text: &str) {
        let may = |kernel: &Kernel| kernel.lines().admit(kind, Instant::now());
        if self.kernel.as_ref().is_some_and(may) {
            note(&format!("linux: {text}"));
        }
    }
}

/// Waits until `is_over`. `pause` waits a while, and returns false once patience is over; then this returns false.
fn comes_in_time(is_over: impl Fn() -> bool, mut pause: impl FnMut() -> bool) -> bool {
    while !is_over() {
        if !pause() {
            return is_over();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn routes_are_waited_for_as_long_as_patience_lasts() {
        const PATIENCE: u32 = 5_000;
        for (comes, in_time, waited) in [
            (0, true, 0),
            (4_999, true, 4_999),
            (u32::MAX, false, PATIENCE),
        ] {
            let now = Cell::new(0);
            let pause = || {
                now.set(now.get() + 1);
                now.get() < PATIENCE
            };
            let found = comes_in_time(|| now.get() >= comes, pause);
            assert_eq!((found, now.get()), (in_time, waited), "{comes}");
        }
    }
}
