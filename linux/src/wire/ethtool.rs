//! Link speed requests of ethtool's generic netlink family (`Documentation/networking/ethtool-netlink.rst` of Linux).

use super::attribute::{attributes, u16_at};
use super::request::Request;

/// `GENL_ID_CTRL`: the controller, which resolves the numbers of families.
const CONTROLLER: u16 = 16;
/// `CTRL_CMD_GETFAMILY`.
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`.
const FAMILY_ID: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_NAME: u16 = 2;
/// Octets of `struct genlmsghdr`.
pub const FIXED: usize = 4;

/// `ETHTOOL_MSG_LINKMODES_SET`.
const SET_LINK_MODES: u8 = 5;
/// `ETHTOOL_A_LINKMODES_HEADER`.
const OF: u16 = 1;
/// `ETHTOOL_A_HEADER_DEV_INDEX`.
const INDEX: u16 = 1;
/// `ETHTOOL_A_LINKMODES_AUTONEG`.
const NEGOTIATED: u16 = 2;
/// `ETHTOOL_A_LINKMODES_SPEED`, in Mb/s.
const SPEED: u16 = 5;
/// `ETHTOOL_A_LINKMODES_DUPLEX`.
const DUPLEX: u16 = 6;
/// `DUPLEX_FULL`.
const FULL: u8 = 1;

/// Builds the request for the number of ethtool's family.
#[must_use]
pub fn family() -> Request {
    Request::new(CONTROLLER, super::request::ASK, &[GET_FAMILY, 1, 0, 0])
        .with(FAMILY_NAME, b"ethtool\0")
}

/// Returns the number of the family in an answer.
#[must_use]
pub fn family_of(body: &[u8]) -> Option<u16> {
    let mut all = attributes(body.get(FIXED..)?);
    let (_, value) = all.find(|(kind, _)| *kind == FAMILY_ID)?;
    u16_at(value, 0)
}

/// Builds the request that sets a link's speed in Mb/s, without autonegotiation, at full duplex.
#[must_use]
pub fn set_speed(family: u16, link: u32, mbps: u32) -> Request {
    let header = Request::attributes_of(INDEX, &link.to_ne_bytes());
    Request::new(family, super::request::ASK, &[SET_LINK_MODES, 1, 0, 0])
        .with(OF | super::request::NESTED, &header)
        .with(NEGOTIATED, &[0])
        .with(SPEED, &mbps.to_ne_bytes())
        .with(DUPLEX, &[FULL])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::HEADER;

    #[test]
    fn the_number_of_a_family_is_found_among_its_attributes() {
        let answer = [
            &[1, 2, 0, 0][..],
            &[12, 0, 2, 0],
            b"ethtool\0",
            &[6, 0, 1, 0, 21, 0, 0, 0],
        ];
        assert_eq!(family_of(&answer.concat()), Some(21));
        assert_eq!(family_of(&[1, 2]), None);
        let bytes = set_speed(21, 7, 100_000).numbered(1);
        assert_eq!(bytes.len(), HEADER + FIXED + 12 + 8 + 8 + 8);
        assert_eq!(u16_at(&bytes, 4), Some(21));
    }
}
