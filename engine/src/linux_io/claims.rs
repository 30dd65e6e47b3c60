//! Claims of the switch's own addresses: ARP and neighbour discovery frames by which another station says that it has one.
//!
//! The kernel answers such a frame or ignores it, and tells nobody. The frames pass here on their way to Linux.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use npcc_pipeline::punt::Place;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::ethernet;

/// Most claims that wait: others of the moment are left out.
const WAITING: usize = 16;

/// Claim of an address by a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Port and VLAN on which the frame arrived.
    pub place: Place,
    /// Address that is claimed.
    pub address: IpAddr,
    /// MAC address of the station.
    pub mac: Mac,
}

/// Own addresses, and the claims of others that wait to be reported.
#[derive(Debug, Default)]
pub struct Claims {
    own: Mutex<Vec<(Place, Mac, Vec<IpAddr>)>>,
    waiting: Mutex<Vec<Claim>>,
}

fn lock<T>(at: &Mutex<T>) -> MutexGuard<'_, T> {
    at.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claims {
    /// Sets the switch's own addresses at a place.
    pub fn set_own(&self, place: Place, mac: Mac, addresses: Vec<IpAddr>) {
        let mut own = lock(&self.own);
        own.retain(|(at, ..)| *at != place);
        own.push((place, mac, addresses));
    }

    /// Looks at an ARP or neighbour discovery frame that arrived at a place.
    pub fn look(&self, place: Place, frame: &[u8]) {
        let Some((address, mac)) = claimed(frame) else {
            return;
        };
        let own = lock(&self.own);
        let is_own = own
            .iter()
            .any(|(at, _, addresses)| *at == place && addresses.contains(&address));
        // The switch's own frames come back where a peer reflects them.
        let is_ours = own.iter().any(|(_, own, _)| *own == mac);
        drop(own);
        let mut waiting = lock(&self.waiting);
        let claim = Claim {
            place,
            address,
            mac,
        };
        if is_own && !is_ours && waiting.len() < WAITING && !waiting.contains(&claim) {
            waiting.push(claim);
        }
    }

    /// Takes the claims that wait.
    pub fn take(&self) -> Vec<Claim> {
        std::mem::take(&mut lock(&self.waiting))
    }
}

/// Returns the address that a frame claims, and the MAC address for it: the sender of ARP; the target of a neighbour advertisement, or of a
/// solicitation by a station that is about to take the address (RFC 4862).
fn claimed(frame: &[u8]) -> Option<(IpAddr, Mac)> {
    let (macs, rest) = frame.split_first_chunk::<12>()?;
    let sender = Mac(*macs.last_chunk()?);
    let (ethertype, packet) = rest.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*ethertype) {
        ethernet::ARP => {
            // Ethernet and IPv4, six and four octets.
            let packet = packet.strip_prefix(&[0, 1, 8, 0, 6, 4])?;
            let mac = Mac(*packet.get(2..)?.first_chunk()?);
            let address: [u8; 4] = *packet.get(8..)?.first_chunk()?;
            (address != [0; 4]).then_some((address.into(), mac))
        }
        ethernet::IPV6 => {
            let source: [u8; 16] = *packet.get(8..)?.first_chunk()?;
            let message = packet.get(40..)?;
            let target: [u8; 16] = *message.get(8..)?.first_chunk()?;
            match message.first()? {
                // A solicitation from nobody.
                135 if source == [0; 16] => Some((target.into(), sender)),
                // With the option of the target's MAC address, if it is the first.
                136 => {
                    let option = message.get(24..).unwrap_or_default();
                    let mac = option.strip_prefix(&[2, 1]).and_then(<[u8]>::first_chunk);
                    Some((target.into(), mac.map_or(sender, |mac| Mac(*mac))))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use npcc_pipeline::units::PortId;

    use super::*;

    const OURS: Mac = Mac([2, 0, 0, 0, 1, 1]);
    const THEIRS: Mac = Mac([2, 0xde, 0xad, 0, 0, 1]);
    const HERE: Place = Place {
        port: PortId(0),
        vlan: 0,
    };

    fn arp(mac: Mac, address: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(mac.0);
        frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(mac.0);
        frame.extend(address);
        frame.extend([0; 6]);
        frame.extend(address);
        frame
    }

    fn nd(kind: u8, source: [u8; 16], target: [u8; 16], option: &[u8]) -> Vec<u8> {
        let mut frame = [[0x33; 6], THEIRS.0].concat();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]);
        frame.extend(source);
        frame.extend([0; 16]);
        frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(target);
        frame.extend(option);
        frame
    }

    fn claims() -> Claims {
        let claims = Claims::default();
        let own = ["10.0.1.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        claims.set_own(HERE, OURS, own.to_vec());
        claims
    }

    fn macs(claims: &Claims) -> Vec<Mac> {
        claims.take().iter().map(|claim| claim.mac).collect()
    }

    /// Earlier defect: a station that took the switch's own address was noticed nowhere.
    #[test]
    fn a_station_that_says_it_has_our_address_is_found() {
        let claims = claims();
        let v6: [u8; 16] = "2001:db8::1"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets();
        let other = [2, 1, 2, 0, 0, 0, 9, 9];
        for (frame, mac) in [
            (arp(THEIRS, [10, 0, 1, 1]), THEIRS),
            (nd(135, [0; 16], v6, &[]), THEIRS),
            (nd(136, v6, v6, &[]), THEIRS),
            (nd(136, v6, v6, &other), Mac([2, 0, 0, 0, 9, 9])),
        ] {
            claims.look(HERE, &frame);
            claims.look(HERE, &frame);
            assert_eq!(macs(&claims), [mac], "once");
            let elsewhere = Place { vlan: 7, ..HERE };
            claims.look(elsewhere, &frame);
            assert_eq!(macs(&claims), [], "another subnet");
        }
    }

    #[test]
    fn what_claims_nothing_of_ours_is_passed_over() {
        let claims = claims();
        let v6: [u8; 16] = "2001:db8::1"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets();
        for frame in [
            arp(OURS, [10, 0, 1, 1]),
            arp(THEIRS, [10, 0, 1, 3]),
            arp(THEIRS, [0; 4]),
            nd(135, [1; 16], v6, &[]),
            nd(133, [0; 16], v6, &[]),
        ] {
            claims.look(HERE, &frame);
            for len in 0..frame.len() {
                let _ = claimed(&frame[..len]);
            }
        }
        assert_eq!(macs(&claims), []);
    }

    #[test]
    fn claims_that_wait_are_bounded() {
        let claims = claims();
        for n in 0..200 {
            claims.look(HERE, &arp(Mac([2, 0, 0, 0, 9, n]), [10, 0, 1, 1]));
        }
        assert_eq!(claims.take().len(), WAITING);
    }
}
