//! Safe interface to DPDK: it contains all `unsafe` code of the switch, and none of the switch's
//! own logic.
//!
//! Laws:
//! - An [`Mbuf`] has one owner. It is freed, sent, or still owned by someone; a [`Burst`] that is
//!   not sent whole keeps the rest, so nothing is lost without a line of code that drops it.
//! - A queue has one user: [`RxQueue`] and [`TxQueue`] are handed out once, are not `Clone`, and
//!   keep their port alive.
//! - DPDK's memory outlives every pointer into it: see [`Eal`] and [`Mempool`] for who holds whom.
//! - Per packet no C function is called; per burst, only the driver's own.
//!
//! Not here: forwarding, statistics kept over time, thread placement, flow rules.
//!
//! Tests that start EAL need a process each, because DPDK starts once in a process: `cargo nextest
//! run` gives that; under `cargo test` each such test is the only one in its file under `tests/`.

mod burst;
mod eal;
mod errno;
mod frames;
mod hugepages;
mod layout;
mod log;
mod mbuf;
mod mempool;
mod one_by_one;
mod port;
mod privileges;
mod removal;
mod ring;
mod rx_interrupt;
mod tsc;

pub use burst::{Burst, Drain};
pub use eal::{Eal, EalError, LaunchError, Lcore, LcoreHandle, LcorePanic};
pub use errno::Errno;
pub use frames::{Frames, free_all};
pub use hugepages::{
    HugepagePool, hugepages, hugepages_available, hugepages_mounted, hugepages_stale,
};
pub use log::log_to;
pub use mbuf::{FillError, HEADROOM, Mbuf, Segments};
pub use mempool::{AllocError, Mempool, MempoolConfig, PoolError};
pub use one_by_one::OneByOne;
pub use port::{
    Descriptors, Device, DeviceError, Direction, Link, LinkPause, MacAddr, Operation, PfcQueues,
    Phase, Plugin, Port, PortConfig, PortError, PortStats, RxQueue, Spread, TxQueue,
};
pub use privileges::{Capability, Ids, Privileges, filter_and_log, keep_privileges};
pub use ring::{RingError, RingPort, RingRx, RingTx};
pub use rx_interrupt::{PacketSockets, RxInterrupt};
pub use tsc::{Calibration, Clock, Tsc};

/// Version of the DPDK this was built with, for example `22.11.11`.
pub const DPDK_VERSION: &str = dpdk_sys::VERSION;
