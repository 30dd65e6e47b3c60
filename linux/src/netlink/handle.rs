//! Requests of other threads to the netlink thread, and its notices to them.

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use npcc_pipeline::counters::Counter;
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::{Mac, PortId, RefusedMac};

use super::ages::Move;
use super::lookup::{Differing, Packet};
use super::report::{Counts, Report};
use super::wants::{RefusedByLinux, Wanted};
use crate::fib::{Member, Refused};
use crate::table::model::Model;
use crate::wanted::differ::{Differ, Figures, Installed};
use crate::wanted::ports::Place;
use crate::wire::neighbor::Neighbor;
use crate::wire::not_followed::NotFollowed;

/// Notice from the netlink thread.
#[derive(Debug)]
pub enum Notice {
    /// Administrative state of a port changed in Linux: true for up.
    Admin(PortId, bool),
    /// Local addresses of a port's VLANs changed in Linux; those of the configuration come first, in its order. With the VLANs and MAC
    /// addresses of macvlans that have an address: frames to them are the switch's too.
    Addresses(PortId, Vec<(u16, Vec<IpAddr>)>, Vec<(u16, Mac)>),
    /// The MAC address or the MTU of a link of this name was changed in Linux, and set back.
    SetBack(String, String),
    /// The interface of a port, or of one of its VLANs, is gone from Linux.
    Gone(PortId, u16),
    /// A neighbour behind a port has another MAC address.
    Moved(PortId, Move),
    /// The kernel's state was dumped and compared.
    Compared(Report),
    /// The kernel would send a packet another way than the switch, for a second at least.
    Differs(Differing),
    /// The switch had no capacity.
    NoRoom(Refused),
    /// The kernel refused a request.
    Refused(RefusedByLinux),
    /// The thread ended with an error.
    Ended(io::Error),
}

/// Status of the mirror, for display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Number of IPv4 and of IPv6 prefixes in the kernel's two tables.
    pub kernel: [usize; 2],
    /// Number of these prefixes that no packet is forwarded by (loopback, groups, link-local), at the last comparison.
    pub aside: usize,
    /// Number of installed prefixes that are hosts of attached subnets, without a route of their own, at the last comparison.
    pub hosts: usize,
    /// Numbers of installed routes and groups.
    pub figures: Figures,
    /// Counts since the start.
    pub counts: Counts,
    /// Report of the last comparison.
    pub compared: Option<Report>,
    /// Size of the receive buffer, as the kernel counts it.
    pub receive_buffer: usize,
}

/// Prefix, and its installed state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRow {
    /// Destination prefix.
    pub prefix: Prefix,
    /// Installed state in the switch.
    pub installed: Installed,
    /// Next hops installed in the switch.
    pub members: Vec<Member>,
    /// Origin (`RTPROT_*`) and metric of the kernel's route; `None` for a neighbour, which has no route of its own.
    pub origin: Option<(u8, u32)>,
    /// Reason why it is not followed, or in part only.
    pub reason: Option<String>,
}

/// Neighbour behind a port of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborRow {
    /// The kernel's neighbour.
    pub neighbor: Neighbor,
    /// Port and VLAN.
    pub place: Place,
    /// Reason why no frame is sent to its MAC address.
    pub refused: Option<RefusedMac>,
    /// Time for which it has, or had, its MAC address; `None` if it never had one.
    pub age: Option<Duration>,
    /// Number of times that its MAC address changed.
    pub moves: u32,
}

/// Returns the installed state of all prefixes, and what is not followed, in the order of prefixes.
pub(super) fn rows(differ: &Differ, model: &Model) -> Vec<RouteRow> {
    let row = |(prefix, installed)| {
        let group = match installed {
            Installed::By(id) => differ.group(id),
            Installed::LeftOut | Installed::Refused => None,
        };
        let best = model.routes().best(prefix);
        RouteRow {
            prefix,
            installed,
            members: group.map_or_else(Vec::new, |group| group.members.all.clone()),
            origin: best.map(|best| (best.protocol, best.metric)),
            reason: differ.not_followed(model, prefix, installed),
        }
    };
    let not_followed = |one: &NotFollowed| RouteRow {
        prefix: one.prefix,
        installed: Installed::LeftOut,
        members: vec![],
        origin: None,
        reason: Some(one.to_string()),
    };
    let mut rows: Vec<RouteRow> = differ.installed().map(row).collect();
    rows.extend(model.not_followed().map(not_followed));
    rows.sort_by_key(|row| row.prefix);
    rows
}

/// Request of another thread.
pub(super) enum Command {
    Resolve(PortId, u16, IpAddr),
    Want(Box<Wanted>, Sender<Vec<RefusedByLinux>>),
    Routes(Sender<Vec<RouteRow>>),
    Carrier(PortId, bool),
    Speed(PortId, u32),
    Compare(Sender<Report>),
    Neighbors(Sender<Vec<NeighborRow>>),
    Verify(Sender<Vec<Prefix>>),
    Flows(Vec<Packet>),
    LookUp(Sender<Vec<Differing>>),
    Stop,
}

/// Handle for requests to the netlink thread; clones share it.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) commands: Sender<Command>,
    pub(super) bell: Arc<UnixStream>,
    pub(super) status: Arc<Mutex<Status>>,
    pub(super) turns: Arc<Counter>,
}

impl Handle {
    /// Requests resolution of the next hop to a destination over a port's VLAN, as if a packet were sent there.
    pub fn resolve(&self, port: PortId, vlan: u16, destination: IpAddr) {
        self.tell(Command::Resolve(port, vlan, destination));
    }

    /// Changes the desired state of the kernel, and returns what it refused; `None` when the thread has ended.
    #[must_use]
    pub fn want(&self, wanted: Wanted) -> Option<Vec<RefusedByLinux>> {
        self.ask(|answer| Command::Want(Box::new(wanted), answer))
    }

    /// Returns all prefixes with a route or a host, in order; `None` when the thread has ended.
    #[must_use]
    pub fn routes(&self) -> Option<Vec<RouteRow>> {
        self.ask(Command::Routes)
    }

    /// Sets or clears the carrier of a port's links.
    pub fn carrier(&self, port: PortId, carrier: bool) {
        self.tell(Command::Carrier(port, carrier));
    }

    /// Sets the speed of a port's links, in Mb/s.
    pub fn speed(&self, port: PortId, mbps: u32) {
        self.tell(Command::Speed(port, mbps));
    }

    /// Compares with the kernel now; `None` when the thread has ended.
    #[must_use]
    pub fn compare(&self) -> Option<Report> {
        self.ask(Command::Compare)
    }

    /// Returns all neighbours behind a port of the switch; `None` when the thread has ended.
    #[must_use]
    pub fn neighbors(&self) -> Option<Vec<NeighborRow>> {
        self.ask(Command::Neighbors)
    }

    /// Returns the prefixes whose installed state is not the desired one, computed anew from all the state; `None` when the thread has ended.
    #[must_use]
    pub fn verify(&self) -> Option<Vec<Prefix>> {
        self.ask(Command::Verify)
    }

    /// Gives it packets of flows, to look up their ways in the kernel from time to time.
    pub fn flows(&self, flows: Vec<Packet>) {
        self.tell(Command::Flows(flows));
    }

    /// Looks up, in the kernel, the ways of the flows' packets and of hosts of prefixes drawn by lot, and returns those that the switch has
    /// otherwise; `None` when the thread has ended.
    #[must_use]
    pub fn look_up(&self) -> Option<Vec<Differing>> {
        self.ask(Command::LookUp)
    }

    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> Status {
        let status = self.status.lock();
        status.map_or_else(
            |poisoned| poisoned.into_inner().clone(),
            |status| status.clone(),
        )
    }

    /// Returns the thread's progress counter, which grows a few times a second when idle, and during a dump too.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns.get()
    }

    /// Stops the thread.
    pub fn stop(&self) {
        self.tell(Command::Stop);
    }

    fn tell(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            // If the pipe is full, the thread is signalled already.
            let _ = (&*self.bell).write(&[0]);
        }
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.tell(command(answer));
        answered.recv().ok()
    }
}
