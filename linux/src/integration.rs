//! Namespace, TAPs, sockets and thread together.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use npcc_pipeline::counters::Counter;

use crate::fib::Fib;
use crate::netlink::ahead::Ahead;
use crate::netlink::ethtool::Ethtool;
use crate::netlink::handle::{Handle, Notice};
use crate::netlink::mirror::Mirror;
use crate::netlink::requests::Requests;
use crate::netlink::service::Service;
use crate::netlink::stream::Stream;
use crate::netlink::wants::{Wanted, Wants};
use crate::tap::{Tap, TapPort, namespace, sysctl};
use crate::wanted::ports::{Place, Ports};
use crate::wire::request::{LinkSettings, set_link};

/// The index of the loopback device, in every namespace.
const LOOPBACK: u32 = 1;

npcc_pipeline::defaults! {
    /// What the switch has of Linux.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// The name of a network namespace, made if there is none; without one it is that of the calling thread.
        pub namespace: Option<String> = Some("npcc".to_owned()),
        /// Octets of messages that may wait to be read.
        pub receive_buffer: usize = 16 << 20,
        /// How often everything is compared with the kernel, at most.
        pub compare_every: Duration = Duration::from_secs(10),
        /// The TAPs.
        pub ports: Vec<TapPort> = vec![],
        /// Addresses, neighbours and routes.
        pub wanted: Wanted = Wanted::default(),
    }
}

/// What a process before left.
#[derive(Debug, Default)]
pub struct Left {
    /// Descriptors of TAPs, by the names they are said to have.
    pub taps: BTreeMap<String, OwnedFd>,
    /// What the kernel was to have; `None` if that is not known: then nothing is taken away.
    pub wanted: Option<Wanted>,
    /// Who reads the kernel's state already, in the namespace of the settings.
    pub ahead: Option<Ahead>,
}

/// What was opened and does not run yet.
#[derive(Debug)]
pub struct Integration {
    taps: Vec<Tap>,
    refused: Vec<io::Error>,
    mirror: Mirror,
    wants: Wants,
    ethtool: Option<Ethtool>,
    namespace: Option<String>,
    compare_every: Duration,
}

/// The thread that runs. When this is dropped it ends.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Integration {
    /// As [`Integration::after`], with nothing that was left.
    ///
    /// # Errors
    /// Those of [`Integration::after`].
    pub fn open(settings: Settings) -> io::Result<Integration> {
        Integration::after(Left::default(), settings)
    }

    /// Enters the namespace in a thread of its own, takes over the TAPs that were left there, makes those that are missing, and gives
    /// them their addresses. What the kernel was to have and is not to have any more is taken away.
    ///
    /// # Errors
    /// What Linux refused, with the device it is about. Root, or `CAP_NET_ADMIN` and, for a namespace, `CAP_SYS_ADMIN`, is needed.
    pub fn after(left: Left, settings: Settings) -> io::Result<Integration> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| open_here(left, settings));
            let panicked = |_| Err(io::Error::other("the thread that opens the TAPs panicked"));
            inside.join().unwrap_or_else(panicked)
        })
    }

    /// Hands out the TAPs, in the order of the settings.
    #[must_use]
    pub fn take_taps(&mut self) -> Vec<Tap> {
        std::mem::take(&mut self.taps)
    }

    /// Why TAPs that were left were not taken over; their descriptors are closed.
    #[must_use]
    pub fn refused(&self) -> &[io::Error] {
        &self.refused
    }

    /// What grows while the thread moves; `fib`, which is the thread's too, may add to it.
    #[must_use]
    pub fn turns(&self) -> Arc<Counter> {
        Arc::clone(self.mirror.turns())
    }

    /// Starts the thread: it gives `fib` what is wanted, and `notice` what is to be told.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn run<F, N>(self, fib: F, notice: N) -> io::Result<Running>
    where
        F: Fib + 'static,
        N: FnMut(Notice) + Send + 'static,
    {
        let Integration {
            mirror,
            wants,
            ethtool,
            namespace,
            compare_every,
            taps,
            refused: _,
        } = self;
        let (service, handle) = Service::new(mirror, (wants, ethtool), compare_every, fib, notice)?;
        let thread = std::thread::Builder::new().name("npcc-netlink".to_owned());
        let thread = thread.spawn(move || {
            // Those nobody took stay as long as the thread runs.
            let _taps = taps;
            // Sockets that are opened later are to be of the namespace too.
            match namespace.as_deref().map_or(Ok(()), namespace::enter) {
                Ok(()) => service.run(),
                Err(error) => service.end(error),
            }
        })?;
        Ok(Running {
            handle,
            thread: Some(thread),
        })
    }
}

impl Running {
    /// How to ask the thread.
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn open_here(left: Left, settings: Settings) -> io::Result<Integration> {
    sysctl::room_for_neighbors();
    if let Some(name) = &settings.namespace {
        namespace::enter(name)?;
    }
    sysctl::of_namespace()?;
    let stream = Stream::open(settings.receive_buffer)?;
    let mut requests = Requests::open()?;
    let up = LinkSettings {
        up: Some(true),
        ..LinkSettings::default()
    };
    requests.ask(set_link(LOOPBACK, &up))?;
    let Left {
        taps: mut left,
        wanted: before,
        ahead,
    } = left;
    // What was wanted before is known by the names of links, so it is changed once those are.
    let mut wants = Wants::new(before.unwrap_or_default());
    let (mut places, mut taps, mut refused) = (BTreeMap::new(), vec![], vec![]);
    for port in settings.ports {
        let place = Place {
            port: port.port,
            vlan: port.vlan,
            mac: port.mac,
        };
        places.insert(port.name.clone(), place);
        let tap = match left.remove(&port.name) {
            Some(fd) => Tap::take_over(fd, port.clone(), &mut requests).or_else(|why| {
                refused.push(why);
                Tap::open(port, &mut requests)
            }),
            None => Tap::open(port, &mut requests),
        }?;
        let TapPort { name, mac, .. } = tap.settings();
        wants.link(name, tap.index(), *mac);
        taps.push(tap);
    }
    // Those of ports that are no more go before anything is put: an address may have moved.
    drop(left);
    if let Some(not) = wants
        .change(settings.wanted, &mut requests)
        .into_iter()
        .next()
    {
        let message = not.to_string();
        return Err(io::Error::new(not.source.kind(), message));
    }
    Ok(Integration {
        taps,
        refused,
        mirror: Mirror::new(stream, requests, Ports::new(places)).after(ahead),
        wants,
        ethtool: Ethtool::open().ok(),
        namespace: settings.namespace,
        compare_every: settings.compare_every,
    })
}
