//! MAC control: 802.3x pause and 802.1Qbb priority flow control.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::ethernet::{self, Ethernet};
use crate::units::{BitRate, Mac, Nanos};

/// Opcode of 802.3x pause.
pub const PAUSE: u16 = 0x0001;
/// Opcode of priority flow control (IEEE 802.1Q-2018 clause 36).
pub const PFC: u16 = 0x0101;
/// Destination of MAC control frames, which no bridge forwards.
pub const ADDRESS: Mac = Mac([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
/// Length of a MAC control frame without FCS, in bytes.
pub const FRAME_LEN: usize = 60;
/// Bytes that a link sends during a pause quantum: 512 bit times.
const QUANTUM: u64 = 64;

/// Payload of a PFC frame, after the EtherType.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Pfc {
    /// Opcode, always [`PFC`].
    pub opcode: U16,
    /// Class-enable vector: high octet zero; bit n of the low octet makes the time of class n valid.
    pub enable: U16,
    /// Pause of each class in quanta of 512 bit times; 0 ends it.
    pub times: [U16; 8],
}

/// A parsed MAC control frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacControl {
    /// Priority flow control frame: the classes it names, and the quanta of each class.
    Pfc {
        /// Class-enable vector: bit n makes the time of class n valid.
        classes: u8,
        /// Quanta of each class.
        quanta: [u16; 8],
    },
    /// Pause frame of 802.3x, for the whole link.
    Pause,
    /// Frame with another opcode or address, or cut short.
    Invalid,
}

/// Parses a whole MAC control frame that arrived at the station `mac`.
#[must_use]
pub fn read(frame: &[u8], mac: Mac) -> MacControl {
    let Ok((header, payload)) = Ethernet::ref_from_prefix(frame) else {
        return MacControl::Invalid;
    };
    if header.dst != ADDRESS.0 && header.dst != mac.0 {
        return MacControl::Invalid;
    }
    if payload.first_chunk() == Some(&PAUSE.to_be_bytes()) && payload.len() >= 4 {
        return MacControl::Pause;
    }
    match (pfc_classes(payload), Pfc::ref_from_prefix(payload)) {
        (Some(classes), Ok((pfc, _))) => MacControl::Pfc {
            classes,
            quanta: pfc.times.map(U16::get),
        },
        _ => MacControl::Invalid,
    }
}

/// Returns the classes a PFC frame names, as a mask; `None` for any other MAC control frame.
#[must_use]
pub fn pfc_classes(payload: &[u8]) -> Option<u8> {
    let (frame, _) = Pfc::ref_from_prefix(payload).ok()?;
    // The reserved octet is ignored on receipt (IEEE 802.1Q clause 36.1.3.3), as are all reserved fields.
    let [_, low] = frame.enable.get().to_be_bytes();
    (frame.opcode.get() == PFC).then_some(low)
}

/// Builds a PFC frame from `src` that names `classes`, each with its quanta.
#[must_use]
pub fn build(src: Mac, classes: u8, quanta: [u16; 8]) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    let header = Ethernet {
        dst: ADDRESS.0,
        src: src.0,
        ethertype: U16::new(ethernet::MAC_CONTROL),
    };
    let pfc = Pfc {
        opcode: U16::new(PFC),
        enable: U16::new(u16::from(classes)),
        times: quanta.map(U16::new),
    };
    // Both fit: 14 + 20 of 60 bytes.
    let _ = header.write_to_prefix(&mut frame);
    let _ = pfc.write_to_prefix(frame.get_mut(ethernet::HEADER_LEN..).unwrap_or_default());
    frame
}

/// Returns the time for which `quanta` pause a link of `rate`.
#[inline]
#[must_use]
pub fn time_of(quanta: u16, rate: BitRate) -> Nanos {
    rate.time_of(u64::from(quanta) * QUANTUM)
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
        assert_eq!(
            pfc_classes(&frame),
            Some(0b1000),
            "the reserved octet is ignored"
        );
        frame[..4].copy_from_slice(&[0x00, 0x01, 0x12, 0x34]);
        assert_eq!(pfc_classes(&frame), None, "802.3x");
    }

    /// The XOFF of class 3 as 802.1Qbb lays it out, octet by octet.
    #[test]
    fn xoff_of_class_3_is_as_the_standard_says() {
        let mut quanta = [0; 8];
        quanta[3] = 0xffff;
        let frame = build(Mac([2, 0, 0, 0, 0, 1]), 0b1000, quanta);
        let mut want = vec![
            1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 1, 1, 0, 8,
        ];
        want.extend([0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        want.extend([0; 26]);
        assert_eq!(frame[..], want[..]);
        let read = read(&frame, Mac([2, 0, 0, 0, 0, 9]));
        assert_eq!(
            read,
            MacControl::Pfc {
                classes: 0b1000,
                quanta
            }
        );
    }

    #[test]
    fn what_is_malformed_is_invalid() {
        let mac = Mac([2, 0, 0, 0, 0, 9]);
        let good = build(Mac([2, 0, 0, 0, 0, 1]), 1, [7; 8]);
        let damage: [(usize, u8); 2] = [(5, 2), (15, 2)];
        for (at, value) in damage {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(read(&bad, mac), MacControl::Invalid, "octet {at}");
        }
        assert_eq!(read(&good[..33], mac), MacControl::Invalid, "cut short");
        let mut pause = good;
        pause[14..16].copy_from_slice(&[0, 1]);
        assert_eq!(read(&pause, mac), MacControl::Pause);
    }

    /// verilog-ethernet's mac_pause_ctrl contract, and scapy's mac_control.uts: 0x1234 quanta at 10 Mb/s last 0.238592 s.
    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(time_of(0x1234, BitRate(10_000_000)), Nanos(238_592_000));
        assert_eq!(time_of(100, BitRate(10_000_000_000)), Nanos(5_120));
        assert_eq!(time_of(u16::MAX, BitRate(100_000_000_000)), Nanos(335_540));
    }
}
