//! Ethtool socket, which sets the speed that Linux shows for links.

use std::io;

use netlink_sys::protocols::NETLINK_GENERIC;

use super::requests::Requests;
use crate::wire::ethtool::{family, family_of, set_speed};

/// Ethtool socket, with the number of its generic netlink family.
#[derive(Debug)]
pub struct Ethtool {
    requests: Requests,
    family: u16,
}

impl Ethtool {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel has no ethtool family (Linux before 5.6).
    pub fn open() -> io::Result<Ethtool> {
        let mut requests = Requests::of(NETLINK_GENERIC)?;
        let mut found = None;
        requests.ask_for(family(), |reported| {
            found = found.or_else(|| family_of(reported.body))
        })?;
        let family = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Ethtool { requests, family })
    }

    /// Sets a link's speed in Mb/s.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn set_speed(&mut self, link: u32, mbps: u32) -> io::Result<()> {
        self.requests.ask(set_speed(self.family, link, mbps))
    }
}
