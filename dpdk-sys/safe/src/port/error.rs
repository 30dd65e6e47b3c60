//! Errors of a port, and what to do about them.

use std::path::PathBuf;

use super::device::DeviceError;
use super::state::{Direction, Phase};
use crate::errno::Errno;

/// Operation of the driver that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Operation {
    /// Reading the device's capabilities.
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
    /// Starting the port.
    #[display("start")]
    Start,
    /// Stopping the port.
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
    /// Reading the device's support for pause by queue.
    #[display("tell which pause by queue it can do")]
    ReadPfc,
    /// Enabling the device to honour priority pause.
    #[display("obey priority pause by itself")]
    SetPfc,
    /// Disabling pause of the whole link.
    #[display("disable pause of the whole link (802.3x)")]
    SetLinkPause,
    /// Reading the mapping of queues to traffic classes.
    #[display("tell which queue serves which traffic class")]
    ReadClasses,
    /// Setting the device's MTU.
    #[display("set its MTU")]
    SetMtu,
    /// Setting the link up or down.
    #[display("take its link up or down")]
    SetLink,
}

/// Error of an operation on a port.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortError {
    /// The device's name cannot be understood.
    #[error("device \"{device}\": {reason}")]
    BadDevice {
        /// Device as given.
        device: String,
        /// Reason why it cannot be parsed.
        #[source]
        reason: DeviceError,
    },
    /// The driver's plug-in is not installed.
    #[error(
        "device \"{device}\": no driver \"{driver}\" in {}; install it (Debian: apt-get install \
         {package}), or check the spelling",
        folder.display()
    )]
    NoDriver {
        /// Device as given.
        device: String,
        /// Driver that its name selects.
        driver: String,
        /// Folder in which drivers are looked for.
        folder: PathBuf,
        /// Debian's package of that driver, if it has one.
        package: String,
    },
    /// A file among the device's arguments does not exist.
    #[error(
        "device \"{device}\": {key}={}: no such file; the path is relative to the folder the \
         switch was started in",
        path.display()
    )]
    NoFile {
        /// Device as given.
        device: String,
        /// Key of the argument.
        key: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// The network interface among the device's arguments does not exist.
    #[error(
        "device \"{device}\": there is no network interface \"{interface}\" here: see `ip link`, \
         and mind the network namespace"
    )]
    NoInterface {
        /// Device as given.
        device: String,
        /// Name of the interface.
        interface: String,
    },
    /// The PCI device does not exist.
    #[error("device \"{device}\": there is no PCI device at {address}: see `lspci -D`")]
    NoPciDevice {
        /// Device as given.
        device: String,
        /// Full PCI address.
        address: String,
    },
    /// The device has a kernel driver with which DPDK cannot use it.
    #[error(
        "device \"{device}\": {address} has the kernel's driver {driver}, with which DPDK cannot use \
         it: dpdk-devbind.py --bind={wanted} {address}"
    )]
    KernelDriver {
        /// Device as given.
        device: String,
        /// Full PCI address.
        address: String,
        /// Kernel driver; `none` when it has none.
        driver: String,
        /// Kernel driver that it needs.
        wanted: &'static str,
    },
    /// The driver refused the device.
    #[error(
        "device \"{device}\" could not be attached: {errno}; {said}; check its arguments, and the \
         host with npcc-switch doctor{hint}"
    )]
    Attach {
        /// Device as given.
        device: String,
        /// DPDK's reason.
        errno: Errno,
        /// Last lines that DPDK logged meanwhile.
        said: String,
        /// Hint at another possible cause with this driver; may be empty.
        hint: &'static str,
    },
    /// Attaching produced no Ethernet port.
    #[error("device \"{device}\" was attached but is not an Ethernet port")]
    NotEthernet {
        /// Device as given.
        device: String,
    },
    /// Another `Port` owns the device.
    #[error("device \"{device}\" is open already: name each device once")]
    AlreadyOpen {
        /// Device as given.
        device: String,
    },
    /// More queues were requested than the device has.
    #[error(
        "device \"{device}\" has {max} {direction} queues, {wanted} were requested: use fewer \
         workers on this port"
    )]
    TooManyQueues {
        /// Device as given.
        device: String,
        /// Receive or transmit side.
        direction: Direction,
        /// Number of queues requested.
        wanted: u16,
        /// Number of queues of the device.
        max: u16,
    },
    /// The MTU is outside the device's range.
    #[error(
        "device \"{device}\" takes an MTU from {min} to {max}, not {wanted}: write mtu: {} on this port",
        wanted.clamp(min, max)
    )]
    BadMtu {
        /// Device as given.
        device: String,
        /// Requested MTU in bytes.
        wanted: u16,
        /// Minimum MTU in bytes.
        min: u16,
        /// Maximum MTU in bytes.
        max: u16,
    },
    /// The device cannot have a receive ring of this size.
    #[error(
        "device \"{device}\" takes {min} to {max} receive descriptors in steps of {step}, not {wanted}: write rx_descriptors: \
         {nearest} on this port"
    )]
    BadDescriptors {
        /// Device as given.
        device: String,
        /// Requested number.
        wanted: u16,
        /// Minimum number.
        min: u16,
        /// Maximum number.
        max: u16,
        /// Number of which each size is a multiple.
        step: u16,
        /// Nearest number that the device can have.
        nearest: u16,
    },
    /// The kernel interface that the device shares takes smaller packets.
    #[error(
        "device \"{device}\": the kernel's interface of this card (index {index}) has an MTU of {found}, \
         below {wanted}: ip link set dev INTERFACE mtu {wanted}"
    )]
    InterfaceMtu {
        /// Device as given.
        device: String,
        /// Index of the interface.
        index: u32,
        /// MTU of the interface in bytes.
        found: i32,
        /// Requested MTU in bytes.
        wanted: u16,
    },
    /// A frame of the MTU does not fit one buffer.
    #[error(
        "device \"{device}\": an MTU of {mtu} needs buffers for frames of {needed} bytes, the \
         pool's hold {room}: raise the pool's frame_room"
    )]
    BufferTooSmall {
        /// Device as given.
        device: String,
        /// MTU in bytes.
        mtu: u16,
        /// Bytes of the longest frame.
        needed: u32,
        /// Bytes that the pool's buffers hold.
        room: u16,
    },
    /// The driver failed in an operation, or lacks it.
    #[error("device \"{device}\" could not {operation}: {errno}")]
    Driver {
        /// Device as given.
        device: String,
        /// Operation that failed.
        operation: Operation,
        /// Driver's reason.
        errno: Errno,
    },
    /// The queue does not exist.
    #[error(
        "device \"{device}\" was configured with {count} {direction} queues: there is no number \
         {index}"
    )]
    NoSuchQueue {
        /// Device as given.
        device: String,
        /// Receive or transmit side.
        direction: Direction,
        /// Requested index, from 0.
        index: u16,
        /// Number of queues.
        count: u16,
    },
    /// The queue is in use.
    #[error(
        "device \"{device}\": {direction} queue {index} is taken: a queue has one user, who must \
         drop it first"
    )]
    QueueTaken {
        /// Device as given.
        device: String,
        /// Receive or transmit side.
        direction: Direction,
        /// Index of the queue, from 0.
        index: u16,
    },
    /// The port is not in the phase that the call requires.
    #[error("device \"{device}\" is {phase}, and must be {needed} for this")]
    WrongPhase {
        /// Device as given.
        device: String,
        /// Current phase.
        phase: Phase,
        /// Required phase.
        needed: Phase,
    },
    /// Queues of the port are still in use.
    #[error(
        "device \"{device}\" cannot stop while {rx} rx and {tx} tx queues are in use: drop them \
         first"
    )]
    QueuesOut {
        /// Device as given.
        device: String,
        /// Number of receive queues in use.
        rx: usize,
        /// Number of transmit queues in use.
        tx: usize,
    },
}

impl PortError {
    /// Returns true if the driver does not have the operation at all, as is common for software drivers.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Driver { errno, .. } if errno.is_unsupported())
    }
}
