//! TAP device of a port, or of a VLAN on it.

use std::fs::{self, File};
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

/// Maximum length of a device name in Linux, in octets.
const LONGEST_NAME: usize = 15;

/// Network namespace of the calling thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Purpose of a TAP, and its settings in Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapPort {
    /// Name in Linux, at most 15 octets.
    pub name: String,
    /// Port it belongs to.
    pub port: PortId,
    /// VLAN ID, 0 for untagged frames. Frames through the TAP do not carry the tag.
    pub vlan: u16,
    /// MAC address of the switch on this interface.
    pub mac: Mac,
    /// IP MTU in octets.
    pub mtu: u32,
}

/// Open TAP. When its last descriptor is closed the device disappears, with its addresses and routes: on drop, unless another process
/// holds a second descriptor.
#[derive(derive_more::Debug)]
#[debug("Tap {{ settings: {settings:?}, index: {index:?}, .. }}")]
pub struct Tap {
    device: File,
    settings: TapPort,
    index: u32,
    is_new: bool,
}

impl Tap {
    /// Creates the device in the network namespace of the calling thread: without offloads, without an automatic IPv6 link-local
    /// address, up, and with a carrier until [`crate::netlink::handle::Handle::carrier`] takes it.
    ///
    /// # Errors
    /// The step that Linux refused.
    pub fn open(settings: TapPort, requests: &mut Requests) -> io::Result<Tap> {
        let of = failed(&settings.name);
        if settings.name.is_empty() || settings.name.len() > LONGEST_NAME {
            let error = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(of("its name is not of 1 to 15 octets", error));
        }
        let builder = DeviceBuilder::new().name(&settings.name).layer(Layer::L2);
        let device = builder.offload(false).enable(false).build_sync();
        let device = device.map_err(|error| match (error.kind(), holder(&settings.name)) {
            (io::ErrorKind::ResourceBusy, Some(who)) => of(
                "making it",
                io::Error::new(error.kind(), format!("{who} has a TAP of this name")),
            ),
            _ => of("making it", error),
        })?;
        // A second descriptor, as the device must outlive `device`, which closes the first.
        let kept = device.as_fd().try_clone_to_owned();
        let kept = kept.map_err(|error| of("keeping it", error))?;
        let mac = Some(settings.mac);
        Tap::set_up(kept, settings, mac, requests).map(|tap| Tap {
            is_new: true,
            ..tap
        })
    }

    /// Takes over the device behind a descriptor that a previous process left open, with its addresses, routes and neighbours: it must be
    /// the one of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// It is another device, or Linux refused a step.
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
        // Setting the MAC address, even to the same value, makes Linux flush the neighbours.
        let mac = (behind.mac != settings.mac.0).then_some(settings.mac);
        Tap::set_up(left, settings, mac, requests)
    }

    /// Configures a device that is open. Settings that hold already are not disturbed.
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
        // The IPv6 address generation mode must be set before the device is up.
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

    /// Returns true if it was created, false if it was taken over.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns its purpose and settings.
    #[must_use]
    pub const fn settings(&self) -> &TapPort {
        &self.settings
    }

    /// Interface index in Linux.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Receives a frame that Linux sends, without blocking; returns its length.
    ///
    /// # Errors
    /// `WouldBlock` when there is none.
    pub fn recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        (&self.device).read(frame)
    }

    /// Sends a frame to Linux, without blocking; returns its length.
    ///
    /// # Errors
    /// `WouldBlock` when Linux has no room; `EIO` when the device is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        (&self.device).write(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns a function that adds the device and the failed step to an error.
fn failed(name: &str) -> impl Fn(&str, io::Error) -> io::Error + use<> {
    let name = name.to_owned();
    move |doing, error| io::Error::new(error.kind(), format!("TAP {name}: {doing}: {error}"))
}

/// Returns the process that has a TAP of this name open, as far as this process may see it.
fn holder(name: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let line = format!("iff:\t{name}");
    let has = |process: &fs::DirEntry| {
        let files = fs::read_dir(process.path().join("fdinfo"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| {
            let about = fs::read_to_string(file.path()).unwrap_or_default();
            about.lines().any(|one| one == line)
        })
    };
    let numbers = processes.filter(|one| {
        one.file_name()
            .as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit)
    });
    let mut holders = numbers.filter(has);
    let process = holders.next()?;
    let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
    let number = process.file_name().to_string_lossy().into_owned();
    Some(format!("process {number} ({})", program.trim()))
}

fn index_of(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}
