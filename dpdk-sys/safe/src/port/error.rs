//! What can go wrong with a port, and what to do about it.

use std::path::PathBuf;

use super::device::DeviceError;
use super::state::{Direction, Phase};
use crate::errno::Errno;

/// What was asked of the driver when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Operation {
    /// Reading what the device can do.
    #[display("read the device's abilities")]
    ReadInfo,
    /// Setting queues and MTU.
    #[display("configure queues and MTU")]
    Configure,
    /// Sizing the descriptor rings.
    #[display("size the descriptor rings")]
    SizeQueues,
    /// Setting up a receive queue.
    #[display("set up a receive queue")]
    SetUpRx,
    /// Setting up a transmit queue.
    #[display("set up a transmit queue")]
    SetUpTx,
    /// Starting.
    #[display("start")]
    Start,
    /// Stopping.
    #[display("stop")]
    Stop,
    /// Switching promiscuous mode.
    #[display("switch promiscuous mode")]
    SetPromiscuous,
    /// Setting the MAC address.
    #[display("set the MAC address")]
    SetMac,
    /// Reading the MAC address.
    #[display("read the MAC address")]
    ReadMac,
    /// Reading counters.
    #[display("read counters")]
    ReadStats,
    /// Zeroing counters.
    #[display("zero counters")]
    ClearStats,
    /// Reading the link's state.
    #[display("read the link's state")]
    ReadLink,
    /// Asking what pause by queue it can do.
    #[display("tell which pause by queue it can do")]
    ReadPfc,
    /// Having it obey priority pause.
    #[display("obey priority pause by itself")]
    SetPfc,
    /// Reading which queue serves which traffic class.
    #[display("tell which queue serves which traffic class")]
    ReadClasses,
    /// Taking its link up or down.
    #[display("take its link up or down")]
    SetLink,
}

/// A port could not do what was asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortError {
    /// The device's name cannot be understood.
    #[error("device \"{device}\": {reason}")]
    BadDevice {
        /// As given.
        device: String,
        /// Why.
        #[source]
        reason: DeviceError,
    },
    /// The driver's plug-in is not installed.
    #[error(
        "device \"{device}\": no driver \"{driver}\" in {}; check the spelling, or install it \
         (Debian: apt-get install {package})",
        folder.display()
    )]
    NoDriver {
        /// As given.
        device: String,
        /// The driver its name asks for.
        driver: String,
        /// Where drivers are looked for.
        folder: PathBuf,
        /// Debian's package of that driver, if it has one.
        package: String,
    },
    /// A file among the device's arguments is not there.
    #[error(
        "device \"{device}\": {key}={}: no such file; the path is relative to the folder the \
         switch was started in",
        path.display()
    )]
    NoFile {
        /// As given.
        device: String,
        /// The argument.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The network interface among the device's arguments is not there.
    #[error(
        "device \"{device}\": there is no network interface \"{interface}\" here: see `ip link`, \
         and mind the network namespace"
    )]
    NoInterface {
        /// As given.
        device: String,
        /// The interface.
        interface: String,
    },
    /// No such PCI device.
    #[error("device \"{device}\": there is no PCI device at {address}: see `lspci -D`")]
    NoPciDevice {
        /// As given.
        device: String,
        /// Its full address.
        address: String,
    },
    /// A kernel driver holds the device.
    #[error(
        "device \"{device}\": the kernel's driver {driver} holds {address}; give it to DPDK: \
         dpdk-devbind.py --bind=vfio-pci {address} (mlx4 and mlx5 stay with their kernel driver)"
    )]
    KernelDriver {
        /// As given.
        device: String,
        /// Its full address.
        address: String,
        /// The kernel's driver; `none` when it has none.
        driver: String,
    },
    /// The driver refused the device.
    #[error(
        "device \"{device}\" could not be attached: {errno}; the lines EAL printed say why: \
         check its arguments{hint}"
    )]
    Attach {
        /// As given.
        device: String,
        /// DPDK's reason.
        errno: Errno,
        /// What else it may be with this driver; empty for nothing.
        hint: &'static str,
    },
    /// Attaching brought no Ethernet port.
    #[error("device \"{device}\" was attached but is not an Ethernet port")]
    NotEthernet {
        /// As given.
        device: String,
    },
    /// Another `Port` owns it.
    #[error("device \"{device}\" is open already: name each device once")]
    AlreadyOpen {
        /// As given.
        device: String,
    },
    /// More queues than the device has.
    #[error(
        "device \"{device}\" has {max} {direction} queues, {wanted} were asked for: use fewer \
         workers on this port"
    )]
    TooManyQueues {
        /// As given.
        device: String,
        /// Which side.
        direction: Direction,
        /// Asked for.
        wanted: u16,
        /// What it has.
        max: u16,
    },
    /// The MTU is outside what the device does.
    #[error("device \"{device}\" takes an MTU from {min} to {max}, not {wanted}")]
    BadMtu {
        /// As given.
        device: String,
        /// Asked for, in bytes.
        wanted: u16,
        /// Least, in bytes.
        min: u16,
        /// Most, in bytes.
        max: u16,
    },
    /// A frame of the MTU does not fit one buffer.
    #[error(
        "device \"{device}\": an MTU of {mtu} needs buffers for frames of {needed} bytes, the \
         pool's hold {room}: raise the pool's frame_room"
    )]
    BufferTooSmall {
        /// As given.
        device: String,
        /// In bytes.
        mtu: u16,
        /// Bytes of the longest frame.
        needed: u32,
        /// Bytes the pool's buffers hold.
        room: u16,
    },
    /// The driver failed in, or lacks, an operation.
    #[error("device \"{device}\" could not {operation}: {errno}")]
    Driver {
        /// As given.
        device: String,
        /// What it was asked.
        operation: Operation,
        /// Its reason.
        errno: Errno,
    },
    /// The queue does not exist.
    #[error(
        "device \"{device}\" was configured with {count} {direction} queues: there is no number \
         {index}"
    )]
    NoSuchQueue {
        /// As given.
        device: String,
        /// Which side.
        direction: Direction,
        /// Asked for, from 0.
        index: u16,
        /// How many there are.
        count: u16,
    },
    /// Somebody has the queue.
    #[error(
        "device \"{device}\": {direction} queue {index} is taken: a queue has one user, who must \
         drop it first"
    )]
    QueueTaken {
        /// As given.
        device: String,
        /// Which side.
        direction: Direction,
        /// From 0.
        index: u16,
    },
    /// The port is not in the phase the call needs.
    #[error("device \"{device}\" is {phase}, and must be {needed} for this")]
    WrongPhase {
        /// As given.
        device: String,
        /// Where it is.
        phase: Phase,
        /// Where it must be.
        needed: Phase,
    },
    /// Queues are still out.
    #[error(
        "device \"{device}\" cannot stop while {rx} rx and {tx} tx queues are in use: drop them \
         first"
    )]
    QueuesOut {
        /// As given.
        device: String,
        /// Receive queues taken.
        rx: usize,
        /// Transmit queues taken.
        tx: usize,
    },
}

impl PortError {
    /// Whether the driver does not have the operation at all, as software drivers often do not.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Driver { errno, .. } if errno.is_unsupported())
    }
}
