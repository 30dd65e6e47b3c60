//! Identification of the device behind a descriptor of `/dev/net/tun`: [`Tap::behind`].

use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc::{self, Ioctl, c_int, c_short, ifreq};
use nix::sys::stat::{SFlag, fstat, major, minor};

/// Requests `TUNGETIFF` and `TUNGETDEVNETNS` of linux/if_tun.h.
const GET_DEVICE: Ioctl = 0x8004_54d2;
const GET_NAMESPACE: Ioctl = 0x54e3;
/// Flags of a plain TAP (`IFF_TAP`, `IFF_NO_PI`), and mask with those that change frames: `IFF_TUN`, `IFF_VNET_HDR`, `IFF_MULTI_QUEUE`, `IFF_PERSIST`.
const PLAIN: c_short = 0x1002;
const MATTERS: c_short = PLAIN | 0x0001 | 0x4000 | 0x0100 | 0x0800;
/// Major and minor number of `/dev/net/tun`.
const TUN: (u64, u64) = (10, 200);

/// Device behind a descriptor of `/dev/net/tun`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// Name of the device.
    pub name: String,
    /// True if it is a TAP that disappears with its last descriptor, and whose frames have no header before them.
    pub plain: bool,
    /// MAC address of the device.
    pub mac: [u8; 6],
    /// Number of the network namespace it is in, as `/proc/PID/ns/net` shows it.
    pub namespace: u64,
}

impl Tap {
    /// Queries the kernel for the device behind a descriptor.
    ///
    /// # Errors
    /// The descriptor is of something else, or its device is gone.
    pub fn behind(fd: BorrowedFd<'_>) -> io::Result<Tap> {
        let facts = fstat(fd)?;
        let is_device = SFlag::from_bits_truncate(facts.st_mode) & SFlag::S_IFMT == SFlag::S_IFCHR;
        if !is_device || (major(facts.st_rdev), minor(facts.st_rdev)) != TUN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the descriptor is not of a TAP",
            ));
        }
        let (device, mac) = (ask(fd, GET_DEVICE)?, ask(fd, libc::SIOCGIFHWADDR)?);
        // SAFETY: `ifr_name` ends with a zero within its 16 octets: the kernel writes it so, and `zeroed` did before.
        let name = unsafe { CStr::from_ptr(device.ifr_name.as_ptr()) };
        // SAFETY: the kernel answered `TUNGETIFF` with flags, and `SIOCGIFHWADDR` with an address; both are plain numbers.
        let (flags, octets) = unsafe {
            let octets = mac.ifr_ifru.ifru_hwaddr.sa_data;
            (device.ifr_ifru.ifru_flags, octets)
        };
        let mut address = [0; 6];
        for (to, from) in address.iter_mut().zip(octets) {
            *to = from.to_ne_bytes()[0];
        }
        Ok(Tap {
            name: name.to_string_lossy().into_owned(),
            plain: flags & MATTERS == PLAIN,
            mac: address,
            namespace: fstat(namespace(fd)?)?.st_ino,
        })
    }
}

/// Performs an ioctl on the device of a descriptor of `/dev/net/tun`.
fn ask(fd: BorrowedFd<'_>, question: Ioctl) -> io::Result<ifreq> {
    // SAFETY: a structure of numbers, of which all zeros is one.
    let mut answer: ifreq = unsafe { zeroed() };
    // SAFETY: the descriptor is open and of `/dev/net/tun`, whose driver writes one `ifreq` here for each of the two questions.
    let done: c_int = unsafe { libc::ioctl(fd.as_raw_fd(), question, &raw mut answer) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}

/// Returns the network namespace of the device.
fn namespace(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is open and of `/dev/net/tun`, whose driver takes no argument for this and answers with a descriptor.
    let opened: c_int = unsafe { libc::ioctl(fd.as_raw_fd(), GET_NAMESPACE) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this call; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}
