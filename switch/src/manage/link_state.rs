//! What is known of the ports' links.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use npcc_pipeline::units::Mac;

use crate::apply::desired::Link;
use crate::wiring::kernel::Link as LinuxLink;
use crate::wiring::pfc::PortFlow;
use crate::wiring::speeds::Speeds;

/// A port's link as it was last carried out.
#[derive(Debug, Clone)]
pub struct LinkState {
    /// Frames are let in.
    pub up: bool,
    /// The operator lets it be up.
    pub admin_up: bool,
    /// Its speeds: of the time it was last up.
    pub speeds: Speeds,
    /// Its flow control, which follows the speeds.
    pub flow: PortFlow,
    /// When it last changed.
    pub since: SystemTime,
    /// How often it went down.
    pub flaps: u64,
    /// Why it is down.
    pub reason: DownReason,
}

impl LinkState {
    /// What follows from it, for a port of this address.
    #[must_use]
    pub fn link(&self, mac: Mac) -> Link {
        Link {
            mac,
            up: self.up,
            mbps: self.speeds.said(),
            flow: self.flow.clone(),
        }
    }
}

npcc_pipeline::named! {
    /// Why a port is down.
    #[derive(Default)]
    pub enum DownReason {
        /// It is up.
        #[default]
        None = "",
        /// The operator took it down.
        Admin = "admin",
        /// The device says that its link is down.
        Link = "link",
        /// The device does not answer: it was unplugged, or its driver failed.
        Device = "device",
    }
}

/// All ports' links.
#[derive(Debug, Default)]
pub struct Links(Mutex<Vec<LinkState>>);

impl Links {
    /// As they are at the start.
    #[must_use]
    pub const fn new(states: Vec<LinkState>) -> Links {
        Links(Mutex::new(states))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<LinkState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One port's.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<LinkState> {
        self.lock().get(index).cloned()
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<LinkState> {
        self.lock().clone()
    }

    /// What Linux is told of each.
    #[must_use]
    pub fn for_linux(&self) -> Vec<LinuxLink> {
        let link = |state: &LinkState| LinuxLink {
            up: state.up,
            mbps: u32::try_from(state.speeds.link.0 / 1_000_000).unwrap_or(u32::MAX),
        };
        self.lock().iter().map(link).collect()
    }
}
