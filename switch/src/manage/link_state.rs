//! State of the ports' links.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use npcc_pipeline::units::{BitRate, Mac};

use crate::apply::desired::ObservedLink;
use crate::wiring::kernel::LinuxLink;
use crate::wiring::pfc::PfcState;
use crate::wiring::speeds::Speeds;

/// Link state of a port, as last applied.
#[derive(Debug, Clone)]
pub struct LinkState {
    /// True if the link is up and frames are accepted.
    pub up: bool,
    /// True if the operator allows it to be up.
    pub admin_up: bool,
    /// True if the workers accept what the port receives: `admin_up` once it is applied.
    pub receives: bool,
    /// True unless its interface in Linux is gone, which only a restart makes again.
    pub has_interface: bool,
    /// Speeds of the link when it was last up.
    pub speeds: Speeds,
    /// Flow control settings, which follow the speeds.
    pub pfc: PfcState,
    /// Time of the last change.
    pub since: SystemTime,
    /// Number of times the link went down.
    pub flaps: u64,
    /// Reason why the link is down.
    pub reason: DownReason,
}

impl LinkState {
    /// Returns the link as the desired state needs it, for a port with this address.
    #[must_use]
    pub fn link(&self, mac: Mac) -> ObservedLink {
        ObservedLink {
            mac,
            up: self.up,
            admin_up: self.admin_up,
            mbps: self.speeds.reported_mbps(),
            pfc: self.pfc.clone(),
        }
    }
}

/// Link state that a device reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkReport {
    /// True if the link is up.
    pub(super) up: bool,
    /// Speed in Mb/s, if the device knows it.
    pub(super) mbps: Option<u32>,
    /// Reason why the link is down.
    pub(super) reason: DownReason,
}

impl LinkReport {
    /// Returns the report of a link that is down.
    pub(super) const fn down(reason: DownReason) -> LinkReport {
        LinkReport {
            up: false,
            mbps: None,
            reason,
        }
    }
}

npcc_pipeline::named! {
    /// Reason why a port is down.
    #[derive(Default)]
    pub enum DownReason {
        /// The port is up.
        #[default]
        None = "",
        /// The operator took it down.
        Admin = "admin",
        /// The device says that its link is down.
        Link = "link",
        /// The device does not answer: it was unplugged, or its driver failed. Also where the port's interface in Linux is gone.
        Device = "device",
    }
}

/// Link states of all ports.
#[derive(Debug, Default)]
pub struct Links(Mutex<Vec<LinkState>>);

impl Links {
    /// Starts with these states.
    #[must_use]
    pub const fn new(states: Vec<LinkState>) -> Links {
        Links(Mutex::new(states))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<LinkState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of one port.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<LinkState> {
        self.lock().get(index).cloned()
    }

    /// Returns the states of all ports.
    #[must_use]
    pub fn all(&self) -> Vec<LinkState> {
        self.lock().clone()
    }

    /// Returns the rates at which the ports send: that of the shaper, else of the link.
    pub(super) fn rates(&self) -> Vec<BitRate> {
        let rate = |state: &LinkState| state.speeds.shaper.unwrap_or(state.speeds.link);
        self.lock().iter().map(rate).collect()
    }

    /// Returns the carrier and speed that are reported to Linux, by port.
    #[must_use]
    pub fn for_linux(&self) -> Vec<LinuxLink> {
        let link = |state: &LinkState| LinuxLink {
            up: state.up,
            mbps: u32::try_from(state.speeds.link.0 / 1_000_000).unwrap_or(u32::MAX),
        };
        self.lock().iter().map(link).collect()
    }
}
