//! Receive side of a driver: how much of a buffer its card fills, and what it makes of a frame that is longer.

use crate::answers::{Floor, Outcome, Oversize, Scatter};
use crate::profile::Profile;

/// Shape in which a frame is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is received.
    Lost,
    /// One buffer.
    Whole,
    /// One frame in buffers of so many bytes.
    Chained(u32),
    /// Frames of so many bytes, each in a buffer.
    Split(u32),
}

impl Profile {
    /// Returns the bytes that the card fills of a buffer of `buffer` bytes.
    #[must_use]
    pub fn buffer_room(&self, buffer: u32) -> u32 {
        match *self.rx_buffer.get() {
            Floor::Whole => buffer,
            Floor::Multiple(of) => buffer / u32::from(of) * u32::from(of),
            Floor::PowerOfTwo(most) => (1 << buffer.max(1).ilog2()).min(u32::from(most)),
        }
    }

    /// Returns true if the driver receives into chains without a request, with buffers of `buffer` bytes.
    #[must_use]
    pub fn scatters(&self, buffer: u32, mtu: u16) -> bool {
        let mtu = u32::from(mtu);
        match *self.scatter.get() {
            Scatter::Requested => false,
            Scatter::AboveRoom(more) => mtu + u32::from(more) > buffer,
            Scatter::AboveBuffer(more) => mtu + u32::from(more) > self.buffer_room(buffer),
            Scatter::AboveMtu(most) => mtu > u32::from(most),
            Scatter::Always => true,
        }
    }

    /// Returns the error with which setup of a receive queue fails, with buffers of `buffer` bytes.
    #[must_use]
    pub fn refuses(&self, buffer: u32, mtu: u16, scatters: bool) -> Option<Outcome> {
        let longest = u32::from(mtu) + self.overhead();
        match *self.oversize.get() {
            Oversize::Refused(outcome) if !scatters && longest > self.buffer_room(buffer) => {
                Some(outcome)
            }
            _ => None,
        }
    }

    /// Returns the shape of a frame of `length` bytes without FCS, with buffers of `buffer` bytes.
    #[must_use]
    pub fn shape(&self, length: u32, buffer: u32, mtu: u16, scatters: bool) -> Shape {
        let room = self.buffer_room(buffer);
        if length > u32::from(mtu) + TWO_TAGS || room == 0 {
            return Shape::Lost;
        }
        match *self.oversize.get() {
            _ if length <= room => Shape::Whole,
            _ if scatters => Shape::Chained(room),
            Oversize::Split => Shape::Split(room),
            Oversize::Never | Oversize::Dropped | Oversize::Refused(_) => Shape::Lost,
        }
    }

    /// Bytes that the driver adds to an MTU: no more than two tags, FCS and a virtio header, also where the host's MTU is a small one.
    fn overhead(&self) -> u32 {
        let mtu = u32::from(*self.max_mtu.get());
        (*self.max_rx_pktlen.get()).saturating_sub(mtu).min(30)
    }
}

/// Bytes of the Ethernet header and two tags.
const TWO_TAGS: u32 = 14 + 2 * 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Room of a buffer for an MTU of 9,100 before it was rounded up for cards.
    const UNFIT: u32 = 9_152;
    const MTU: u16 = 9_100;

    #[test]
    fn each_family_makes_of_a_long_frame_what_its_driver_does() {
        let of = |name: &str, length, buffer| {
            let profile = Profile::named(name).unwrap();
            profile.shape(length, buffer, MTU, profile.scatters(buffer, MTU))
        };
        assert_eq!(of("e1000e", 8_192, UNFIT), Shape::Whole);
        assert_eq!(of("e1000e", 8_193, UNFIT), Shape::Chained(8_192));
        assert_eq!(of("igb", 9_000, UNFIT), Shape::Chained(8_192));
        assert_eq!(of("igb", 9_122, 9_216), Shape::Whole);
        assert_eq!(of("ice", 9_088, UNFIT), Shape::Whole);
        assert_eq!(of("ice", 9_089, UNFIT), Shape::Split(9_088));
        assert_eq!(of("ice", 9_089, 9_120), Shape::Chained(9_088));
        assert_eq!(of("mlx5", 9_122, UNFIT), Shape::Whole);
        assert_eq!(of("mlx5", 9_123, UNFIT), Shape::Lost);
        assert_eq!(of("hns3", 9_000, 9_216), Shape::Chained(4_096));
    }

    #[test]
    fn mlx5_refuses_buffers_that_an_mtu_does_not_fit() {
        let mlx5 = Profile::named("mlx5").unwrap();
        assert_eq!(mlx5.refuses(UNFIT, MTU, false), None);
        assert_eq!(mlx5.refuses(2_048, MTU, false), Some(Outcome::NoSpace));
    }
}
