//! Division of the buffer pool into headroom, reserves and the shared part.

use crate::model::Buffer;
use crate::resolved::Config;

use super::headroom::{Link, sends_pause};

/// Buffer of one lossless priority of one port (a priority group), in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupRoom {
    /// Reserve of the group, whatever others hold.
    pub reserved: u64,
    /// Headroom: bytes that arrive after XOFF is due.
    pub headroom: u64,
    /// XON offset: bytes below its threshold at which the sender is released.
    pub xon_offset: u64,
}

impl GroupRoom {
    /// Returns the buffer of a group for a link: two full frames of reserve and of hysteresis.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        Self {
            reserved: 2 * link.frame(),
            headroom: link.headroom(),
            xon_offset: 2 * link.frame(),
        }
    }
}

/// Size of the shortest frame on the wire, in bytes.
const SHORTEST: u64 = 84;

/// Reserves of control frames, in wire bytes of shortest frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlSizing {
    /// Reserve of each port, for what hosts send in control priorities: mainly CNPs.
    pub port: u64,
    /// Reserve of the frames that the switch generates itself.
    pub own: u64,
    /// Reserve of frames from Linux: BFD, routing protocols and what they need.
    pub linux: u64,
}

impl ControlSizing {
    /// Returns the reserves for a pool of `pool` bytes: some two hundred CNPs of the switch's own, half as many of each port, and no more
    /// than a 64th of the pool. With Linux some forty full frames more, and no more than a 128th.
    #[must_use]
    pub fn of(pool: u64, ports: usize, linux: bool) -> Self {
        let ports = u64::try_from(ports).unwrap_or(u64::MAX).max(1);
        Self {
            port: (8 << 10).min(pool / 128 / ports),
            own: (16 << 10).min(pool / 128),
            linux: if linux { (64 << 10).min(pool / 128) } else { 0 },
        }
    }

    /// Number of packet buffers for the reserves of `ports` ports: in addition to those of the pool, as control frames are short.
    #[must_use]
    pub fn buffers(&self, ports: usize) -> u64 {
        self.bytes(ports).div_ceil(SHORTEST)
    }

    /// Total of the reserves with `ports` ports.
    #[must_use]
    pub fn bytes(&self, ports: usize) -> u64 {
        let ports = u64::try_from(ports).unwrap_or(u64::MAX);
        let ports = self.port.saturating_mul(ports);
        self.own.saturating_add(self.linux).saturating_add(ports)
    }
}

/// Division of the pool, in wire bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lossless {
    /// Groups by port; `None` where no pause is sent.
    pub ports: Vec<Option<GroupRoom>>,
    /// Number of lossless groups that can be paused.
    pub groups: u64,
    /// Size of the whole pool.
    pub pool: u64,
    /// Headroom of all groups, or the shared headroom.
    pub headroom: u64,
    /// Reserves of all groups and of control frames.
    pub reserved: u64,
    /// Shared part of the pool; 0 when headroom and reserves take everything.
    pub shared: u64,
    /// Lowest XOFF threshold, when all groups are congested: alpha S / (1 + alpha P).
    pub least_xoff: u64,
    /// Mean frame size in bytes by which bytes are converted to packet buffers.
    pub min_frame: u64,
}

impl Lossless {
    /// Divides `buffer` among ports with `links` (none: no pause is sent); `linux`: true with Linux integration.
    #[must_use]
    pub fn new(buffer: &Buffer, links: &[Option<Link>], linux: bool) -> Self {
        let ports: Vec<Option<GroupRoom>> = links
            .iter()
            .map(|link| link.as_ref().map(GroupRoom::of))
            .collect();
        let sum = |of: fn(&GroupRoom) -> u64| {
            let each = links.iter().flatten();
            let each =
                each.map(|link| of(&GroupRoom::of(link)).saturating_mul(link.lossless.into()));
            each.fold(0, u64::saturating_add)
        };
        let groups = links
            .iter()
            .flatten()
            .map(|link| u64::from(link.lossless))
            .sum();
        let own = sum(|room| room.headroom);
        let headroom = match buffer.shared_headroom.0 {
            0 => own,
            shared => shared.min(own),
        };
        let pool = buffer.pool.0;
        let control = ControlSizing::of(pool, links.len(), linux);
        let reserved = sum(|room| room.reserved).saturating_add(control.bytes(links.len()));
        let shared = pool.saturating_sub(headroom).saturating_sub(reserved);
        let alpha = u128::from(buffer.alpha_256());
        let least = alpha * u128::from(shared) / (256 + alpha * u128::from(groups));
        Self {
            ports,
            groups,
            pool,
            headroom,
            reserved,
            shared,
            least_xoff: u64::try_from(least).unwrap_or(u64::MAX),
            min_frame: u64::from(buffer.lossless_min_frame.get()).max(1),
        }
    }

    /// Division for a configuration, at the configured or assumed speeds.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let link = |port: &crate::resolved::Port| {
            sends_pause(port.pfc, config.pfc.backend, port.device.id())
                .then(|| Link::configured(config, port))
        };
        let links: Vec<Option<Link>> = config.ports.iter().map(link).collect();
        Self::new(&config.buffer, &links, config.linux.integrate)
    }

    /// Returns the depth, in bytes, that a single lossy queue cannot exceed while nothing else is in the buffer: alpha S / (1 + alpha).
    #[must_use]
    pub fn deepest_lossy(&self, alpha_256: u32) -> u64 {
        let alpha = u128::from(alpha_256);
        let deepest = alpha * u128::from(self.shared) / (256 + alpha);
        u64::try_from(deepest).unwrap_or(u64::MAX)
    }

    /// Number of packet buffers that `bytes` of lossless frames take at the smallest mean frame size.
    #[must_use]
    pub const fn buffers(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.min_frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BitRate, Bytes, Length};

    fn link() -> Link {
        Link {
            receivers: 1,
            lossless: 1,
            cable: Length::from_metres(100_000),
            speed: BitRate(100_000_000_000),
            response: crate::model::PeerResponse::Ieee,
            mtu: 9100,
            outstanding: None,
            batch: 0,
            turn: crate::units::Nanos::from_micros(50),
        }
    }

    #[test]
    fn the_pool_is_divided_without_rest() {
        let buffer = Buffer {
            pool: Bytes(64_000_000),
            ..Buffer::default()
        };
        let room = Lossless::new(&buffer, &[Some(link()), None, Some(link())], false);
        assert_eq!(room.groups, 2);
        assert_eq!(room.headroom, 2 * link().headroom());
        assert_eq!(room.headroom + room.reserved + room.shared, 64_000_000);
        assert_eq!(room.least_xoff, room.shared / 3, "alpha 1, two groups");
    }

    #[test]
    fn shared_headroom_leaves_more() {
        let buffer = Buffer {
            shared_headroom: Bytes(15_000_000),
            ..Buffer::default()
        };
        let two = Link {
            lossless: 2,
            ..link()
        };
        let room = Lossless::new(&buffer, &[Some(two), Some(two)], true);
        assert_eq!(room.headroom, 15_000_000);
    }

    #[test]
    fn shared_headroom_is_never_more_than_all_groups_need() {
        let buffer = Buffer {
            pool: Bytes(256_000_000),
            shared_headroom: Bytes(200_000_000),
            ..Buffer::default()
        };
        let room = Lossless::new(&buffer, &[Some(link()), Some(link())], false);
        assert_eq!(room.headroom, 2 * link().headroom());
    }
}
