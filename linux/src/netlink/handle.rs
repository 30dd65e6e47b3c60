//! How other threads ask the thread, and what it tells them.

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use npcc_pipeline::counters::Counter;
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::PortId;

use super::report::{Counts, Report};
use super::wants::{RefusedByLinux, Wanted};
use crate::fib::{Member, Refused};
use crate::wanted::differ::{Differ, Figures, Installed};
use crate::wanted::ports::Place;
use crate::wire::neighbor::Neighbor;

/// Something to be told.
#[derive(Debug)]
pub enum Notice {
    /// A port was switched on or off in Linux.
    Admin(PortId, bool),
    /// A port's VLANs have these addresses of ours in Linux now; those of the configuration first, in its order.
    Addresses(PortId, Vec<(u16, Vec<IpAddr>)>),
    /// The kernel's state was dumped and compared.
    Compared(Report),
    /// The switch had no room.
    NoRoom(Refused),
    /// The kernel refused what we asked for.
    Refused(RefusedByLinux),
    /// The thread cannot go on.
    Ended(io::Error),
}

/// What is there, for who shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Prefixes of IPv4 and IPv6 in the kernel's two tables.
    pub kernel: [usize; 2],
    /// What became of them.
    pub figures: Figures,
    /// Counts since the start.
    pub counts: Counts,
    /// The last comparison.
    pub compared: Option<Report>,
    /// The receive buffer, as the kernel counts it.
    pub receive_buffer: usize,
}

/// A prefix, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRow {
    /// Its destinations.
    pub prefix: Prefix,
    /// Whether the switch has it.
    pub installed: Installed,
    /// Its next hops there.
    pub members: Vec<Member>,
}

/// What the switch has, in the order of prefixes.
pub(super) fn rows(differ: &Differ) -> Vec<RouteRow> {
    let row = |(prefix, installed)| {
        let group = match installed {
            Installed::By(id) => differ.group(id),
            Installed::LeftOut | Installed::Refused => None,
        };
        RouteRow {
            prefix,
            installed,
            members: group.map_or_else(Vec::new, |group| group.members.all.clone()),
        }
    };
    let mut rows: Vec<RouteRow> = differ.installed().map(row).collect();
    rows.sort_unstable_by_key(|row| row.prefix);
    rows
}

/// A request of another thread.
pub(super) enum Command {
    Resolve(PortId, u16, IpAddr),
    Want(Box<Wanted>, Sender<Vec<RefusedByLinux>>),
    Routes(Sender<Vec<RouteRow>>),
    Carrier(PortId, bool),
    Speed(PortId, u32),
    Compare(Sender<Report>),
    Neighbors(Sender<Vec<(Neighbor, Place)>>),
    Verify(Sender<Vec<Prefix>>),
    Stop,
}

/// How other threads ask; clones ask the same.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) commands: Sender<Command>,
    pub(super) bell: Arc<UnixStream>,
    pub(super) status: Arc<Mutex<Status>>,
    pub(super) turns: Arc<Counter>,
}

impl Handle {
    /// Lets the kernel find who is next on the way to a destination by a port's VLAN, as if a packet were to go there.
    pub fn resolve(&self, port: PortId, vlan: u16, destination: IpAddr) {
        self.tell(Command::Resolve(port, vlan, destination));
    }

    /// Changes what the kernel is to have, and tells what it refused of that; `None` when the thread has ended.
    #[must_use]
    pub fn want(&self, wanted: Wanted) -> Option<Vec<RefusedByLinux>> {
        self.ask(|answer| Command::Want(Box::new(wanted), answer))
    }

    /// Every prefix there is a route or a host of, in order; `None` when the thread has ended.
    #[must_use]
    pub fn routes(&self) -> Option<Vec<RouteRow>> {
        self.ask(Command::Routes)
    }

    /// Gives the links of a port their carrier, or takes it.
    pub fn carrier(&self, port: PortId, carrier: bool) {
        self.tell(Command::Carrier(port, carrier));
    }

    /// Says how fast a port's links are, in Mb/s.
    pub fn speed(&self, port: PortId, mbps: u32) {
        self.tell(Command::Speed(port, mbps));
    }

    /// Compares with the kernel now; `None` when the thread has ended.
    #[must_use]
    pub fn compare(&self) -> Option<Report> {
        self.ask(Command::Compare)
    }

    /// Every neighbour behind a port of ours, and where; `None` when the thread has ended.
    #[must_use]
    pub fn neighbors(&self) -> Option<Vec<(Neighbor, Place)>> {
        self.ask(Command::Neighbors)
    }

    /// The prefixes that do not lead by what is wanted, computed anew from all the state; `None` when the thread has ended.
    #[must_use]
    pub fn verify(&self) -> Option<Vec<Prefix>> {
        self.ask(Command::Verify)
    }

    /// What is there.
    #[must_use]
    pub fn status(&self) -> Status {
        let status = self.status.lock();
        status.map_or_else(
            |poisoned| poisoned.into_inner().clone(),
            |status| status.clone(),
        )
    }

    /// What grows while the thread moves: a few times a second with nothing to do, and in the middle of a dump too.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns.get()
    }

    /// Lets the thread end.
    pub fn stop(&self) {
        self.tell(Command::Stop);
    }

    fn tell(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            // A full pipe has rung already.
            let _ = (&*self.bell).write(&[0]);
        }
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.tell(command(answer));
        answered.recv().ok()
    }
}
