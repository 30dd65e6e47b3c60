//! The TAP of a port, or of a VLAN of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::stat;
use npcc_heap::tap::Tap as Behind;
use npcc_pipeline::units::{Mac, PortId};
use tun_rs::{DeviceBuilder, Layer};

use super::sysctl;
use crate::netlink::requests::Requests;
use crate::wire::request::{LinkSettings, set_link};

/// Octets of the longest name Linux has for a device.
const LONGEST_NAME: usize = 15;

/// The network namespace of the calling thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

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

/// A TAP that is open. When its last descriptor is closed the device goes, with its addresses and routes: this one, unless another holds
/// a second.
#[derive(derive_more::Debug)]
#[debug("Tap {{ settings: {settings:?}, index: {index:?}, .. }}")]
pub struct Tap {
    device: File,
    settings: TapPort,
    index: u32,
    is_new: bool,
}

impl Tap {
    /// Makes the device in the network namespace of the calling thread: without offloads, without an IPv6 address of its own
    /// making, switched on, and with a carrier until [`crate::netlink::handle::Handle::carrier`] takes it.
    ///
    /// # Errors
    /// What Linux refused of it.
    pub fn open(settings: TapPort, requests: &mut Requests) -> io::Result<Tap> {
        let of = failed(&settings.name);
        if settings.name.is_empty() || settings.name.len() > LONGEST_NAME {
            let error = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(of("its name is not of 1 to 15 octets", error));
        }
        let builder = DeviceBuilder::new().name(&settings.name).layer(Layer::L2);
        let device = builder.offload(false).enable(false).build_sync();
        let device = device.map_err(|error| of("making it", error))?;
        // A second descriptor, as the device is to outlive who made it: the first goes with `device`.
        let kept = device.as_fd().try_clone_to_owned();
        let kept = kept.map_err(|error| of("keeping it", error))?;
        let mac = Some(settings.mac);
        Tap::set_up(kept, settings, mac, requests).map(|tap| Tap {
            is_new: true,
            ..tap
        })
    }

    /// Takes over the device behind a descriptor that a process before left open, with its addresses, routes and neighbours: it has to be
    /// the one of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// It is another, or what Linux refused of it.
    pub fn take_over(left: OwnedFd, settings: TapPort, requests: &mut Requests) -> io::Result<Tap> {
        let of = failed(&settings.name);
        let behind = Behind::behind(left.as_fd()).map_err(|error| of("taking it over", error))?;
        let own = stat(OWN_NAMESPACE).map_err(|error| of("taking it over", error.into()))?;
        let wrong = if behind.name != settings.name {
            Some(format!("the descriptor is of {}", behind.name))
        } else if behind.namespace != own.st_ino {
            Some("it is in another network namespace".to_owned())
        } else if !behind.plain {
            Some("it is no TAP, outlives its descriptors, or adds headers to frames".to_owned())
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return Err(of("taking it over", io::Error::other(wrong)));
        }
        // Another address, and be it the same one set anew, has Linux forget the neighbours.
        let mac = (behind.mac != settings.mac.0).then_some(settings.mac);
        Tap::set_up(left, settings, mac, requests)
    }

    /// Sets a device up that is open. Nothing of it changes what holds already.
    fn set_up(
        device: OwnedFd,
        settings: TapPort,
        mac: Option<Mac>,
        requests: &mut Requests,
    ) -> io::Result<Tap> {
        let name = &settings.name;
        let of = failed(name);
        let flags = fcntl(&device, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        flags
            .and_then(|flags| fcntl(&device, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)))
            .map_err(|error| of("reading it", error.into()))?;
        let index = index_of(name).map_err(|error| of("finding it", error))?;
        sysctl::of_device(name).map_err(|error| of("setting it up", error))?;
        let alias = match settings.vlan {
            0 => format!("npcc-switch port {}", settings.port.0),
            vlan => format!("npcc-switch port {} VLAN {vlan}", settings.port.0),
        };
        let link = LinkSettings {
            up: Some(true),
            carrier: None,
            mac,
            mtu: Some(settings.mtu),
            alias: Some(&alias),
            no_address_of_its_own: true,
        };
        // The way of making addresses holds from before the device is switched on.
        let before = LinkSettings {
            up: None,
            ..link.clone()
        };
        for settings in [before, LinkSettings { mac: None, ..link }] {
            let done = requests.ask(set_link(index, &settings));
            done.map_err(|error| of("setting its MAC address, MTU and alias", error))?;
        }
        Ok(Tap {
            device: File::from(device),
            settings,
            index,
            is_new: false,
        })
    }

    /// Whether it was made, and not taken over.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
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
        (&self.device).read(frame)
    }

    /// Gives Linux a frame, without waiting; its length.
    ///
    /// # Errors
    /// `WouldBlock` when Linux has no room; `EIO` when the device is switched off.
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        (&self.device).write(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// An error, with the device and what was being done to it.
fn failed(name: &str) -> impl Fn(&str, io::Error) -> io::Error + use<> {
    let name = name.to_owned();
    move |doing, error| io::Error::new(error.kind(), format!("TAP {name}: {doing}: {error}"))
}

fn index_of(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}
