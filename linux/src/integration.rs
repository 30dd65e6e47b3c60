//! Setup of the Linux integration: namespace, TAPs, sockets and thread.

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

/// Index of the loopback device, in every namespace.
const LOOPBACK: u32 = 1;

npcc_pipeline::defaults! {
    /// Settings of the Linux integration.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// Name of a network namespace, created if it does not exist; `None` uses that of the calling thread.
        pub namespace: Option<String> = Some("npcc".to_owned()),
        /// Size in bytes of the netlink receive buffer.
        pub receive_buffer: usize = 16 << 20,
        /// Interval of the periodic full comparison with the kernel; longer if a comparison takes over a tenth of it.
        pub compare_every: Duration = Duration::from_secs(10),
        /// TAPs to create.
        pub ports: Vec<TapPort> = vec![],
        /// Addresses, neighbours and routes to install in the kernel.
        pub wanted: Wanted = Wanted::default(),
    }
}

/// State inherited from a previous process.
#[derive(Debug, Default)]
pub struct Left {
    /// Descriptors of TAPs, by their presumed names.
    pub taps: BTreeMap<String, OwnedFd>,
    /// Desired kernel state of the previous process; `None` if it is not known: then nothing is removed.
    pub wanted: Option<Wanted>,
    /// Dump of the kernel's state that is already under way in the namespace of the settings.
    pub ahead: Option<Ahead>,
}

/// Integration that is set up and not running yet.
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

/// Handle of the running thread; dropping it stops the thread.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Integration {
    /// Opens the integration as [`Integration::after`], without inherited state.
    ///
    /// # Errors
    /// Those of [`Integration::after`].
    pub fn open(settings: Settings) -> io::Result<Integration> {
        Integration::after(Left::default(), settings)
    }

    /// Opens the integration in the namespace, by a thread of its own: takes over the inherited TAPs, creates those that are missing, and
    /// gives them their addresses. State that the previous process wanted in the kernel and that is not desired any more is removed.
    ///
    /// # Errors
    /// The refusal of Linux, with the device it concerns. Root, or `CAP_NET_ADMIN` and, for a namespace, `CAP_SYS_ADMIN`, is required.
    pub fn after(left: Left, settings: Settings) -> io::Result<Integration> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| open_here(left, settings));
            let panicked = |_| Err(io::Error::other("the thread that opens the TAPs panicked"));
            inside.join().unwrap_or_else(panicked)
        })
    }

    /// Takes the TAPs, in the order of the settings.
    #[must_use]
    pub fn take_taps(&mut self) -> Vec<Tap> {
        std::mem::take(&mut self.taps)
    }

    /// Reasons why inherited TAPs were not taken over; their descriptors are closed.
    #[must_use]
    pub fn refused(&self) -> &[io::Error] {
        &self.refused
    }

    /// Progress counter of the thread, for the watchdog; `fib`, which runs in the thread too, may add to it.
    #[must_use]
    pub fn turns(&self) -> Arc<Counter> {
        Arc::clone(self.mirror.turns())
    }

    /// Starts the thread, which passes changes of the desired state to `fib` and notices to `notice`.
    ///
    /// # Errors
    /// The thread cannot be created.
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
            // TAPs that nobody took stay open as long as the thread runs.
            let _taps = taps;
            // Sockets that are opened later must be in the namespace too.
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
    /// Handle for requests to the thread.
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
    // The previous desired state refers to links by name, so it is changed once their names are known.
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
        let TapPort { name, mac, mtu, .. } = tap.settings();
        wants.link(name, tap.index(), *mac, *mtu);
        taps.push(tap);
    }
    // TAPs of ports that no longer exist are closed before anything is added: an address may have moved.
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
