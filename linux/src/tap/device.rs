//! The TAP of a port, or of a VLAN of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use npcc_pipeline::units::{Mac, PortId};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::sysctl;
use crate::netlink::requests::Requests;
use crate::wire::request::{LinkSettings, set_link};

/// Octets of the longest name Linux has for a device.
const LONGEST_NAME: usize = 15;

/// What a TAP is for, and how it looks in Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapPort {
    /// Its name in Linux, at most 15 octets.
    pub name: String,
    /// The port.
    pub port: PortId,
    /// The VLAN, 0 for frames without a tag. The tag is not in the frames that go through the TAP.
    pub vlan: u16,
    /// Our MAC address there.
    pub mac: Mac,
    /// Octets of the largest packet.
    pub mtu: u32,
}

/// A TAP that is open. When it is dropped the device goes, with its addresses and routes.
pub struct Tap {
    device: SyncDevice,
    settings: TapPort,
    index: u32,
}

impl Tap {
    /// Makes the device in the network namespace of the calling thread: without offloads, without an IPv6 address of its own
    /// making, switched on, and with a carrier until [`crate::netlink::handle::Handle::carrier`] takes it.
    ///
    /// # Errors
    /// What Linux refused of it.
    pub fn open(settings: TapPort, requests: &mut Requests) -> io::Result<Tap> {
        let name = settings.name.clone();
        let of = |doing: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("TAP {name}: {doing}: {error}"))
        };
        if name.is_empty() || name.len() > LONGEST_NAME {
            let error = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(of("its name is not of 1 to 15 octets", error));
        }
        let builder = DeviceBuilder::new().name(&name).layer(Layer::L2);
        let device = builder.offload(false).enable(false).build_sync();
        let device = device.map_err(|error| of("making it", error))?;
        device
            .set_nonblocking(true)
            .map_err(|error| of("reading it", error))?;
        let index = index_of(&name).map_err(|error| of("finding it", error))?;
        sysctl::of_device(&name).map_err(|error| of("setting it up", error))?;
        let alias = match settings.vlan {
            0 => format!("npcc-switch port {}", settings.port.0),
            vlan => format!("npcc-switch port {} VLAN {vlan}", settings.port.0),
        };
        let link = LinkSettings {
            up: Some(true),
            carrier: None,
            mac: Some(settings.mac),
            mtu: Some(settings.mtu),
            alias: Some(&alias),
            no_address_of_its_own: true,
        };
        // The way of making addresses holds from before the device is switched on.
        let before = LinkSettings {
            up: None,
            ..link.clone()
        };
        for settings in [before, link] {
            let done = requests.ask(set_link(index, &settings));
            done.map_err(|error| of("setting its MAC address, MTU and alias", error))?;
        }
        Ok(Tap {
            device,
            settings,
            index,
        })
    }

    /// What it is for.
    #[must_use]
    pub const fn settings(&self) -> &TapPort {
        &self.settings
    }

    /// Its index in Linux.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Takes a frame Linux sends, without waiting; its length.
    ///
    /// # Errors
    /// `WouldBlock` when there is none.
    pub fn recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        self.device.recv(frame)
    }

    /// Gives Linux a frame, without waiting; its length.
    ///
    /// # Errors
    /// `WouldBlock` when Linux has no room; `EIO` when the device is switched off.
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.device.send(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("Tap");
        out.field("settings", &self.settings)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

fn index_of(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}
