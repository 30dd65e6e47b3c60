//! Checks of the packet buffer: its size, and that of an mbuf.

use super::Check;
use crate::model::{Buffer, MbufSize, Port};
use crate::resolved::Device;
use crate::sizing::{LINK_HEADERS, MBUF_HEADROOM, PCI_ROOM, pci_room, smallest_data_room};
use crate::tree::Path;
use crate::units::{Bytes, Nanos};

/// Minimum number of frames for which the pool must have room on each port.
const FRAMES: u64 = 64;
/// Maximum size of the pool, 256 GiB: no machine the switch runs on has more memory.
const MAX_POOL: Bytes = Bytes(256 << 30);

/// Returns true if a port's device is a PCI card.
fn has_pci(ports: &[Port]) -> bool {
    let mut devices = ports.iter().map(|port| Device::parse(&port.device));
    devices.any(|device| device.is_some_and(|device| !device.is_virtual()))
}

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let path = |key: &str| Path::root("buffer").key(key);
    let mtus = file
        .ports
        .iter()
        .map(|p| u64::from(p.mtu.get()) + LINK_HEADERS);
    let least = Bytes(mtus.map(|frame| frame * FRAMES).sum::<u64>());
    let pool = file.buffer.pool;
    if pool < least {
        let message = format!("a pool of {pool} is too small for these ports");
        let usual = Buffer::default().pool;
        let hint = format!("{FRAMES} full frames a port need {least}; {usual} is usual");
        check.error(&path("pool"), message, hint);
    } else if pool > MAX_POOL {
        let message = format!("a pool of {pool} is more than {MAX_POOL}");
        let usual = Buffer::default().pool;
        let hint = format!("{usual} is usual; 100 km at 100G want 32MB");
        check.error(&path("pool"), message, hint);
    }
    let turn = file.buffer.loop_time;
    let (shortest, longest) = (Nanos::from_micros(1), Nanos::from_millis(100));
    if turn < shortest || turn > longest {
        let message = format!("a loop time of {turn} is out of range");
        let usual = Buffer::default().loop_time;
        let hint = format!("write {shortest} to {longest}; {usual} is usual on an isolated core");
        check.error(&path("loop_time"), message, hint);
    }
    let alpha = file.buffer.alpha;
    if !(1.0 / 128.0..=64.0).contains(&alpha) {
        let message = format!("alpha {alpha} is out of range");
        check.error(
            &path("alpha"),
            message,
            "write 0.0078125 (1/128) to 64; 1 is usual",
        );
    }
    if let MbufSize::Bytes(size) = file.buffer.mbuf {
        let mtu = file.ports.iter().map(|p| p.mtu.short()).max().unwrap_or(0);
        let least = smallest_data_room(mtu);
        if size.0 < least {
            let message = format!("a frame with mtu {mtu} does not fit into a buffer of {size}");
            let hint = format!("one buffer holds one frame; write auto, or {least}B or more");
            check.error(&path("mbuf"), message, hint);
        } else if size.0 > 65_535 {
            let message = format!("a buffer of {size} is more than DPDK can describe");
            check.error(
                &path("mbuf"),
                message,
                format!("write auto, or {least}B to 65535B"),
            );
        } else if has_pci(&file.ports)
            && (size.0 < MBUF_HEADROOM + pci_room(mtu)
                || !(size.0 - MBUF_HEADROOM).is_multiple_of(PCI_ROOM))
        {
            let message = format!(
                "a buffer of {size} may cut frames of mtu {mtu} in pieces: drivers of PCI cards count its room less {MBUF_HEADROOM} in whole {PCI_ROOM} B"
            );
            let hint = format!("write auto, or {}B", MBUF_HEADROOM + pci_room(mtu));
            check.warn(&path("mbuf"), message, hint);
        }
    }
}
