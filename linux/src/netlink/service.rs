//! Netlink thread: processes the stream and requests of other threads, and compares with the kernel every few seconds.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod links;

use links::Own;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use npcc_pipeline::route::prefix::{Family, Prefix};
use npcc_pipeline::units::PortId;

use super::ethtool::Ethtool;
use super::handle::{Command, Handle, NeighborRow, Notice, Status, rows};
use super::lookup::{Differing, LookUps, look};
use super::mirror::{Mirror, Turn};
use super::report::{Reason, Report};
use super::wants::{RefusedByLinux, Wants};
use crate::fib::Fib;
use crate::table::model::Model;
use crate::tap::sysctl;
use crate::wanted::decide::is_aside;
use crate::wanted::members::hops;
use crate::wanted::resolving::Ask;
use crate::wire::request::{Resolve, forget, resolve};

/// Minimum pause between a dump and the next, so that under churn the stream is read too.
const BREATH: Duration = Duration::from_millis(100);
/// Minimum pause before a comparison that is not due, but follows from a mismatch or one that was given up.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum sleep: the watchdog must see that the thread makes progress.
const SLEEP: Duration = Duration::from_millis(250);
/// Minimum pause after a comparison, as a multiple of its duration: it takes at most a tenth of the time.
const SHARE: u32 = 10;

/// Longest pause after a comparison, which makes this the longest time for which a difference can go unseen.
const LONGEST: Duration = Duration::from_mins(2);

/// Number of TAPs whose sysctls are read, some 20 us each, before the stream is read again.
const SYSCTLS_OF: usize = 64;

/// Netlink thread's state, see the module's text.
pub struct Service<F, N> {
    mirror: Mirror,
    wants: Wants,
    ethtool: Option<Ethtool>,
    fib: F,
    notice: N,
    every: Duration,
    commands: Receiver<Command>,
    bell: UnixStream,
    status: Arc<Mutex<Status>>,
    /// Administrative state of each port (true for up), as last reported.
    admin: BTreeMap<PortId, bool>,
    /// Local addresses on the VLANs of each port, as last reported.
    addresses: BTreeMap<PortId, Own>,
    /// Port and VLAN of each interface that was there, by its index.
    places: BTreeMap<u32, (PortId, u16)>,
    /// Time of the next periodic comparison.
    due: Instant,
    /// End of the last dump, and the processor time that it took.
    last: (Instant, Duration),
    /// Reason for a dump that must be made.
    wanted: Option<Reason>,
    look_ups: LookUps,
}

impl<F: Fib, N: FnMut(Notice)> Service<F, N> {
    /// Creates a service that sets links' speeds if it can and compares at intervals of `every`, and the handle for requests to it.
    ///
    /// # Errors
    /// The socket pair for wake-ups cannot be created.
    pub fn new(
        mirror: Mirror,
        (wants, ethtool): (Wants, Option<Ethtool>),
        every: Duration,
        fib: F,
        notice: N,
    ) -> io::Result<(Service<F, N>, Handle)> {
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        let (sender, commands) = channel();
        let status = Arc::new(Mutex::new(Status::default()));
        let handle = Handle {
            commands: sender,
            bell: Arc::new(ringer),
            status: Arc::clone(&status),
            turns: Arc::clone(mirror.turns()),
        };
        let service = Service {
            mirror,
            wants,
            ethtool,
            fib,
            notice,
            every,
            commands,
            bell,
            status,
            admin: BTreeMap::new(),
            addresses: BTreeMap::new(),
            places: BTreeMap::new(),
            due: Instant::now(),
            last: (Instant::now(), Duration::ZERO),
            wanted: Some(Reason::Start),
            look_ups: LookUps::new(),
        };
        Ok((service, handle))
    }

    /// Reports the reason why it cannot run.
    pub fn end(mut self, error: io::Error) {
        (self.notice)(Notice::Ended(error));
    }

    /// Runs until it is stopped, or a socket is unusable.
    pub fn run(mut self) {
        loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return (self.notice)(Notice::Ended(error)),
            }
        }
    }

    fn turn(&mut self) -> io::Result<bool> {
        self.mirror.turns().add(1);
        let now = Instant::now();
        self.mirror.model_mut().expire(now);
        if let Some(reason) = self.wanted
            && now >= self.earliest(reason)
        {
            self.wanted = None;
            self.compare(reason)?;
        } else if now >= self.due && self.wanted != Some(Reason::Overrun) {
            self.compare(Reason::Time)?;
        }
        let turn = self.mirror.turn(&mut self.fib)?;
        let more = turn.more;
        self.after(turn);
        if !self.apply()? {
            return Ok(false);
        }
        if !more {
            self.look_up(now)?;
            self.tell_status(None);
            self.wait()?;
        }
        Ok(true)
    }

    /// Makes a round of look-ups if it is due, and reports what differs again. While everything must be read anew, answers mean nothing.
    fn look_up(&mut self, now: Instant) -> io::Result<()> {
        if self.wanted.is_some() || !self.look_ups.is_due(now) {
            return Ok(());
        }
        let (requests, state) = self.mirror.parts();
        for differing in self.look_ups.round(requests, state)? {
            (self.notice)(Notice::Differs(differing));
        }
        Ok(())
    }

    /// Looks up everything now. A change may be under way: an answer that differs counts only after the stream has been read.
    fn look_up_all(&mut self) -> io::Result<Vec<Differing>> {
        let (requests, state) = self.mirror.parts();
        self.look_ups.draw(state);
        let first = self.look_ups.all(requests, state)?;
        let mut lasting = vec![];
        if !first.is_empty() {
            loop {
                let turn = self.mirror.turn(&mut self.fib)?;
                let more = turn.more;
                self.after(turn);
                if !more {
                    break;
                }
            }
            let (requests, state) = self.mirror.parts();
            for (packet, _) in first {
                lasting.extend(look(packet, requests, state)?);
            }
        }
        Ok(lasting)
    }

    /// Sleeps until the stream is readable, a request arrives, or a comparison is due.
    fn wait(&mut self) -> io::Result<()> {
        let until = match self.wanted {
            Some(reason) => self.due.min(self.earliest(reason)),
            None => self.due,
        };
        let left = until.saturating_duration_since(Instant::now()).min(SLEEP);
        let millis = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
        let stream = PollFd::new(self.mirror.stream().as_fd(), PollFlags::POLLIN);
        let bell = PollFd::new(self.bell.as_fd(), PollFlags::POLLIN);
        match poll(&mut [stream, bell], PollTimeout::from(millis)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut rings = [0; 64];
        while matches!(self.bell.read(&mut rings), Ok(64)) {}
        Ok(())
    }

    fn compare(&mut self, reason: Reason) -> io::Result<Report> {
        let before = cpu_time();
        let (mut report, turn) = self.mirror.dump(reason, &mut self.fib)?;
        let busy = cpu_time().saturating_sub(before);
        self.due = Instant::now() + pause(self.every, busy);
        self.last = (Instant::now(), busy);
        self.after(turn);
        self.look_ups.draw(self.mirror.parts().1);
        self.set_back(&mut report)?;
        self.set_links_back();
        self.tell_status(Some(&report));
        (self.notice)(Notice::Compared(report.clone()));
        Ok(report)
    }

    /// Sets back the sysctls that somebody changed. The stream is read meanwhile, as thousands of TAPs take some 100 ms.
    fn set_back(&mut self, report: &mut Report) -> io::Result<()> {
        let names: Vec<String> = self.wants.names().map(str::to_owned).collect();
        let mut done: Vec<_> = sysctl::set_back_in_namespace().collect();
        for some in names.chunks(SYSCTLS_OF) {
            done.extend(
                some.iter()
                    .flat_map(|name| sysctl::set_back_on_device(name)),
            );
            let turn = self.mirror.turn(&mut self.fib)?;
            self.after(turn);
        }
        for one in done {
            match one {
                Ok(words) => report.set_back.push(words),
                Err(source) => (self.notice)(Notice::Refused(RefusedByLinux {
                    what: "to set a sysctl back".to_owned(),
                    source,
                })),
            }
        }
        Ok(())
    }

    /// Returns the earliest time of a dump for this reason.
    fn earliest(&self, reason: Reason) -> Instant {
        let (ended, busy) = self.last;
        match reason {
            Reason::Start => ended,
            Reason::Overrun => ended + BREATH.max(busy.min(LONGEST)),
            Reason::Doubt => ended + PATIENCE.max(busy.min(LONGEST)),
            Reason::Time | Reason::Requested => ended + pause(PATIENCE, busy),
        }
    }

    /// Acts on the results of a turn: requests to the kernel, links that were set up, and a dump to be made.
    fn after(&mut self, turn: Turn) {
        // Lost messages outweigh a mismatch.
        if turn.dump.is_some() && self.wanted != Some(Reason::Overrun) {
            self.wanted = turn.dump;
        }
        if let Some(refused) = turn.done.refused {
            (self.notice)(Notice::NoRoom(refused));
        }
        for ask in turn.done.asks {
            match ask {
                Ask::Keep(link, address) => self.request(
                    resolve(link, address, Resolve::AndKeep),
                    format!("to keep neighbour {address}"),
                ),
                Ask::Forget(link, address) => {
                    let done = forgotten(self.mirror.requests().ask(forget(link, address)));
                    self.heed(done, format!("to forget neighbour {address}"));
                }
            }
        }
        for one in turn.moves {
            if let Some(place) = self.mirror.differ().ports().place(one.link) {
                (self.notice)(Notice::Moved(place.port, one));
            }
        }
        if turn.links_changed {
            self.links_changed();
        }
    }

    /// Executes requests of other threads; returns false to stop.
    fn apply(&mut self) -> io::Result<bool> {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Resolve(port, vlan, address)) => {
                    if let Some(link) = self.mirror.differ().ports().link(port, vlan) {
                        let address = next_on_the_way(self.mirror.model(), link, address);
                        let what = format!("to find neighbour {address}");
                        self.request(resolve(link, address, Resolve::Now), what);
                    }
                }
                Ok(Command::Want(wanted, answer)) => {
                    let refused = self.wants.change(*wanted, self.mirror.requests());
                    let _ = answer.send(refused);
                }
                Ok(Command::Routes(answer)) => {
                    let _ = answer.send(rows(self.mirror.differ(), self.mirror.model()));
                }
                Ok(Command::Carrier(port, carrier)) => self.carrier(port, carrier),
                Ok(Command::Speed(port, mbps)) => self.speed(port, mbps),
                Ok(Command::Compare(answer)) => {
                    // Differences that follow from lost messages are expected.
                    if self.wanted == Some(Reason::Overrun) {
                        self.wanted = None;
                        self.compare(Reason::Overrun)?;
                    }
                    let report = self.compare(Reason::Requested)?;
                    let _ = answer.send(report);
                }
                Ok(Command::Neighbors(answer)) => {
                    let all = self.mirror.model().neighbors().iter();
                    let ports = self.mirror.differ().ports();
                    let now = Instant::now();
                    let ours = all.filter_map(|one| {
                        let age = self.mirror.age(one.link, one.address);
                        Some(NeighborRow {
                            age: age.map(|age| now.saturating_duration_since(age.since)),
                            moves: age.map_or(0, |age| age.moves),
                            neighbor: *one,
                            place: ports.place(one.link)?,
                            refused: ports.refused_mac(one),
                        })
                    });
                    let _ = answer.send(ours.collect());
                }
                Ok(Command::Verify(answer)) => {
                    let wrong = self.mirror.differ().wrong(self.mirror.model());
                    let _ = answer.send(wrong);
                }
                Ok(Command::Flows(flows)) => self.look_ups.set_flows(flows),
                Ok(Command::LookUp(answer)) => {
                    let _ = answer.send(self.look_up_all()?);
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(false),
                Err(TryRecvError::Empty) => return Ok(true),
            }
        }
    }

    fn request(&mut self, request: crate::wire::request::Request, what: String) {
        let done = self.mirror.requests().ask(request);
        self.heed(done, what);
    }

    /// Reports a request that the kernel refused.
    fn heed(&mut self, done: io::Result<()>, what: String) {
        if let Err(source) = done {
            (self.notice)(Notice::Refused(RefusedByLinux { what, source }));
        }
    }

    /// Publishes the current status, and the last comparison if there is a new one.
    fn tell_status(&self, compared: Option<&Report>) {
        let routes = self.mirror.model().routes();
        let kernel = [routes.len_of(Family::V4), routes.len_of(Family::V6)];
        let receive_buffer = self.mirror.stream().receive_buffer().unwrap_or(0);
        let beside = compared.map(|_| {
            let best = routes.all_best();
            let aside = best.filter(|(prefix, best)| is_aside(*prefix, best.action));
            let installed = self.mirror.differ().installed();
            let hosts = installed.filter(|(prefix, _)| routes.best(*prefix).is_none());
            (aside.count(), hosts.count())
        });
        let mut status = self.lock();
        status.kernel = kernel;
        status.figures = self.mirror.differ().figures();
        status.counts = self.mirror.counts();
        status.receive_buffer = receive_buffer;
        (status.aside, status.hosts) = beside.unwrap_or((status.aside, status.hosts));
        if let Some(report) = compared {
            status.compared = Some(report.clone());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<F, N> std::fmt::Debug for Service<F, N> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service")
            .field("mirror", &self.mirror)
            .finish_non_exhaustive()
    }
}

/// Returns the pause after a comparison: at least `least`, ten times the processor time that it took, at most [`LONGEST`]. The time for which
/// the whole process stood still, or waited for a core, is no part of it.
fn pause(least: Duration, busy: Duration) -> Duration {
    least.max(busy.saturating_mul(SHARE).min(LONGEST))
}

/// Returns the processor time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// Returns the result of a request to forget a neighbour: one that is gone already is forgotten.
fn forgotten(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Returns the next hop to a destination over a link: the gateway of its route, or the destination itself on an attached subnet.
fn next_on_the_way(model: &Model, link: u32, destination: IpAddr) -> IpAddr {
    let covering = model.routes().covering(Prefix::host(destination)).next();
    let way = covering.and_then(|(_, entry)| model.ways().get(entry.way));
    let hops = way.map_or_else(Vec::new, |taken| hops(model, &taken.way));
    let mut by_link = hops.iter().filter(|hop| hop.link == link);
    by_link.find_map(|hop| hop.gateway).unwrap_or(destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: what does not use the processor does not put off the next comparison, and nothing puts it off for more than two minutes.
    #[test]
    fn a_standstill_does_not_put_off_the_next_comparison() {
        let every = Duration::from_secs(10);
        let before = cpu_time();
        // The sleep is the standstill.
        std::thread::sleep(Duration::from_millis(1_100));
        let busy = cpu_time() - before;
        assert_eq!(pause(every, busy), every, "{busy:?}");
        for (busy, expected) in [(0, 10), (1, 10), (2, 20), (12, 120), (965, 120)] {
            let expected = Duration::from_secs(expected);
            assert_eq!(pause(every, Duration::from_secs(busy)), expected);
        }
    }

    #[test]
    fn a_neighbour_that_is_gone_is_forgotten() {
        let of = |kind: io::ErrorKind| forgotten(Err(kind.into())).is_ok();
        assert!(forgotten(Ok(())).is_ok() && of(io::ErrorKind::NotFound));
        assert!(!of(io::ErrorKind::PermissionDenied));
        let no_entry = io::Error::from_raw_os_error(nix::errno::Errno::ENOENT as i32);
        assert!(forgotten(Err(no_entry)).is_ok());
    }
}
