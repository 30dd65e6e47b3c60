//! What device a descriptor of `/dev/net/tun` belongs to: [`Tap::behind`].

use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc::{self, Ioctl, c_int, c_short, ifreq};
use nix::sys::stat::{SFlag, fstat, major, minor};

/// `TUNGETIFF` and `TUNGETDEVNETNS` of linux/if_tun.h.
const GET_DEVICE: Ioctl = 0x8004_54d2;
const GET_NAMESPACE: Ioctl = 0x54e3;
/// `IFF_TAP` and `IFF_NO_PI`, and what more may change how frames look: `IFF_TUN`, `IFF_VNET_HDR`, `IFF_MULTI_QUEUE`, `IFF_PERSIST`.
const PLAIN: c_short = 0x1002;
const MATTERS: c_short = PLAIN | 0x0001 | 0x4000 | 0x0100 | 0x0800;
/// `/dev/net/tun`.
const TUN: (u64, u64) = (10, 200);

/// The device behind a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// Its name.
    pub name: String,
    /// Whether it is a TAP that goes with its last descriptor, and whose frames have nothing before them.
    pub plain: bool,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The number of the network namespace it is in, as `/proc/PID/ns/net` shows it.
    pub namespace: u64,
}

impl Tap {
    /// Asks the kernel what is behind a descriptor.
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

/// What the kernel answers to a question about the device of a descriptor of `/dev/net/tun`.
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

/// The network namespace of the device.
fn namespace(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is open and of `/dev/net/tun`, whose driver takes no argument for this and answers with a descriptor.
    let opened: c_int = unsafe { libc::ioctl(fd.as_raw_fd(), GET_NAMESPACE) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this call; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}
