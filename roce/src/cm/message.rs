//! Parser of one message of the InfiniBand connection manager, from a QP1 packet (IBTA volume 1, chapter 12; annex A11).
//!
//! ```text
//!   UDP payload:  0 BTH   12 DETH   20 MAD header   44 message (232 octets)   276 ICRC
//!   MAD header:   1 class   2 class version   3 method   16 attribute
//!   REQ:  0 local id  32 local QPN  43 service type  44 PSN  88 flow label
//!   REP:  0 local id   4 remote id  12 local QPN     20 PSN
//!   others:  0 local id   4 remote id;  DREQ: 8 remote QPN
//!   LAP: 24 local GID  40 remote GID  56 flow label;  APR: 9 status
//! ```
//! The parser only reads; [`super::super::pair::connections`] decides what is believed.

use npcc_pipeline::wire::bth::be24;

use crate::key::{FlowKey, Qpn};

/// Octets of the UDP payload up to the ICRC.
const LEN: usize = 276;
const MAD: usize = 20;
const MESSAGE: usize = 44;
const UD_SEND_ONLY: u8 = 0x64;
/// Q_Key and queue pair that every connection manager uses.
const Q_KEY: [u8; 4] = [0x80, 0x01, 0, 0];
const GSI: [u8; 3] = [0, 0, 1];
/// MAD header of a message: base version 1, class 7, class version 2, method Send.
const HEADER: [u8; 4] = [1, 7, 2, 3];

/// Transport service that a REQ requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Any other service: XRC and reliable datagrams are not paired.
    Other,
}

/// Message of the connection manager: the fields that name queue pairs and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// REQ: a connection is requested.
    Req {
        /// Communication ID chosen by the requesting side.
        local: u32,
        /// Queue pair of the requesting side.
        qpn: Qpn,
        /// First sequence number that the requesting side will receive.
        psn: u32,
        /// Transport service of the connection.
        service: Service,
        /// Flow label both sides derive their UDP source port from; 0 means the hash of both queue pairs.
        flow_label: u32,
    },
    /// REP: the connection is granted.
    Rep {
        /// Communication ID chosen by the granting side.
        local: u32,
        /// Communication ID of the requesting side.
        remote: u32,
        /// Queue pair of the granting side.
        qpn: Qpn,
        /// First sequence number that the granting side will receive.
        psn: u32,
    },
    /// REJ: the connection is refused, by either side.
    Rej {
        /// Communication ID of the refusing side.
        local: u32,
        /// Communication ID of the other side.
        remote: u32,
    },
    /// DREQ: the connection is to end.
    Dreq {
        /// Communication ID of the ending side.
        local: u32,
        /// Communication ID of the other side.
        remote: u32,
        /// Queue pair of the other side.
        remote_qpn: Qpn,
    },
    /// DREP: the connection has ended.
    Drep {
        /// Communication ID of the answering side.
        local: u32,
        /// Communication ID of the other side.
        remote: u32,
    },
    /// LAP: an alternate path is proposed for the connection.
    Lap {
        /// Communication ID of the proposing side.
        local: u32,
        /// Communication ID of the other side.
        remote: u32,
        /// Alternate path, from the proposing side's other address to the other side's; without queue pair.
        path: FlowKey,
        /// Flow label of the alternate path, with the meaning it has in a REQ.
        flow_label: u32,
    },
    /// APR: the answer to a LAP.
    Apr {
        /// Communication ID of the answering side.
        local: u32,
        /// Communication ID of the other side.
        remote: u32,
        /// True if the alternate path is accepted.
        accepted: bool,
    },
    /// RTU, MRA, SIDR: they name no queue pair that is not known already, and pairing needs none of them.
    Other,
}

impl Message {
    /// Parses the UDP payload of a packet to QP1; `None` if it is no message of the connection manager.
    #[must_use]
    pub fn of(payload: &[u8]) -> Option<Message> {
        let payload = payload.get(..LEN)?;
        let at = |offset: usize| payload.get(offset..);
        if *payload.first()? != UD_SEND_ONLY
            || *at(5)?.first_chunk()? != GSI
            || *at(12)?.first_chunk()? != Q_KEY
            || *at(17)?.first_chunk()? != GSI
            || *at(MAD)?.first_chunk()? != HEADER
        {
            return None;
        }
        let attribute = u16::from_be_bytes(*at(MAD + 16)?.first_chunk()?);
        let message = at(MESSAGE)?;
        let word = |offset: usize| {
            let bytes = message.get(offset..)?.first_chunk()?;
            Some(u32::from_be_bytes(*bytes))
        };
        let three = |offset: usize| Some(be24(*message.get(offset..)?.first_chunk()?));
        let (local, remote) = (word(0)?, word(4)?);
        Some(match attribute {
            0x10 => Message::Req {
                local,
                qpn: Qpn::new(three(32)?),
                psn: three(44)?,
                service: match message.get(43)? >> 1 & 3 {
                    0 => Service::Rc,
                    1 => Service::Uc,
                    _ => Service::Other,
                },
                flow_label: word(88)? >> 12,
            },
            0x12 => Message::Rej { local, remote },
            0x13 => Message::Rep {
                local,
                remote,
                qpn: Qpn::new(three(12)?),
                psn: three(20)?,
            },
            0x15 => Message::Dreq {
                local,
                remote,
                remote_qpn: Qpn::new(three(8)?),
            },
            0x16 => Message::Drep { local, remote },
            0x19 => Message::Lap {
                local,
                remote,
                path: FlowKey::of_gids(
                    *message.get(24..)?.first_chunk()?,
                    *message.get(40..)?.first_chunk()?,
                ),
                flow_label: word(56)? >> 12,
            },
            0x1a => Message::Apr {
                local,
                remote,
                accepted: *message.get(9)? == 0,
            },
            0x11 | 0x14 | 0x17 | 0x18 => Message::Other,
            _ => return None,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes the UDP payload of a message, without its ICRC.
    pub(crate) fn payload(attribute: u16, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        bytes[0] = UD_SEND_ONLY;
        bytes[2..4].fill(0xff);
        bytes[5..8].copy_from_slice(&GSI);
        bytes[12..16].copy_from_slice(&Q_KEY);
        bytes[17..20].copy_from_slice(&GSI);
        bytes[20..24].copy_from_slice(&HEADER);
        bytes[36..38].copy_from_slice(&attribute.to_be_bytes());
        for (offset, field) in fields {
            bytes[MESSAGE + offset..MESSAGE + offset + field.len()].copy_from_slice(field);
        }
        bytes
    }

    #[test]
    fn fields_are_where_the_standard_has_them() {
        let req = payload(
            0x10,
            &[
                (0, &[0, 0, 0, 7]),
                (32, &[0, 0, 0x18]),
                (43, &[0b0000_0010]),
                (44, &[0, 1, 0]),
                (88, &[0x12, 0x34, 0x50, 0]),
            ],
        );
        assert_eq!(
            Message::of(&req),
            Some(Message::Req {
                local: 7,
                qpn: Qpn::new(0x18),
                psn: 256,
                service: Service::Uc,
                flow_label: 0x12345,
            })
        );
        let mut other_class = req.clone();
        other_class[21] = 3;
        assert_eq!(Message::of(&other_class), None);
        assert_eq!(Message::of(&req[..LEN - 1]), None);
        let dreq = payload(0x15, &[(0, &[0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0x11])]);
        assert_eq!(
            Message::of(&dreq),
            Some(Message::Dreq {
                local: 7,
                remote: 9,
                remote_qpn: Qpn::new(0x11)
            })
        );
        let v4 = |last: u8| {
            let mut gid = [0; 16];
            gid[10..].copy_from_slice(&[0xff, 0xff, 10, 9, 0, last]);
            gid
        };
        let lap = payload(
            0x19,
            &[
                (0, &[0, 0, 0, 7, 0, 0, 0, 9]),
                (24, &v4(1)),
                (40, &v4(2)),
                (56, &[0x12, 0x34, 0x50, 0]),
            ],
        );
        let path = FlowKey::new([10, 9, 0, 1].into(), [10, 9, 0, 2].into(), Qpn::new(0));
        assert_eq!(
            Message::of(&lap),
            Some(Message::Lap {
                local: 7,
                remote: 9,
                path,
                flow_label: 0x12345
            })
        );
        for (status, accepted) in [(0, true), (3, false)] {
            let apr = payload(0x1a, &[(0, &[0, 0, 0, 9, 0, 0, 0, 7]), (9, &[status])]);
            assert_eq!(
                Message::of(&apr),
                Some(Message::Apr {
                    local: 9,
                    remote: 7,
                    accepted
                })
            );
        }
        // MRA, RTU, SIDR_REQ, SIDR_REP.
        for attribute in [0x11, 0x14, 0x17, 0x18] {
            assert_eq!(Message::of(&payload(attribute, &[])), Some(Message::Other));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Message::of(&bytes);
        }
    }
}
