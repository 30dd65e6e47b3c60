//! MAC control: 802.3x pause and 802.1Qbb priority flow control.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Opcode of 802.3x pause.
pub const PAUSE: u16 = 0x0001;
/// Opcode of priority flow control (IEEE 802.1Q-2018 clause 36).
pub const PFC: u16 = 0x0101;

/// What follows the EtherType of a PFC frame.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Pfc {
    /// [`PFC`].
    pub opcode: U16,
    /// High octet zero; bit n of the low octet: the time of class n is valid.
    pub enable: U16,
    /// Pause of each class in quanta of 512 bit times; 0 ends it.
    pub times: [U16; 8],
}

/// The classes a PFC frame names, as a mask; `None` for any other MAC control frame.
#[must_use]
pub fn pfc_classes(payload: &[u8]) -> Option<u8> {
    let (frame, _) = Pfc::ref_from_prefix(payload).ok()?;
    let [high, low] = frame.enable.get().to_be_bytes();
    (frame.opcode.get() == PFC && high == 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pfc_names_classes() {
        let mut frame = [0u8; 46];
        frame[..4].copy_from_slice(&[0x01, 0x01, 0x00, 0x08]);
        assert_eq!(pfc_classes(&frame), Some(0b1000));
        assert_eq!(pfc_classes(&frame[..19]), None, "cut short");
        frame[2] = 1;
        assert_eq!(pfc_classes(&frame), None, "reserved octet set");
        frame[..4].copy_from_slice(&[0x00, 0x01, 0x12, 0x34]);
        assert_eq!(pfc_classes(&frame), None, "802.3x");
    }
}
