//! Evidence `port-hash`: the same UDP source port in both directions, and it is the hash of both queue pairs.
//!
//! Linux's convention for RoCEv2 with flow label 0 (`rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport` in
//! include/rdma/ib_verbs.h). Symmetric, so both endpoints compute the same port.
//!
//! A network card may follow another rule, so the formula is believed per address pair only where it holds: of the endpoints
//! that share their port with one in the other direction, more than 99 % must have a partner that fits, or most, where the two
//! are alone on their port (others there, with ports of their own, may be another application's). A partner
//! must be the only one that fits, seen from both sides.

use super::endpoints::Endpoints;
use super::pair_state::Verdict;
use crate::key::Qpn;

/// UDP source port of a connection between these queue pairs with flow label 0.
#[must_use]
pub const fn port_of(a: Qpn, b: Qpn) -> u16 {
    let mut v = a.get() as u64 * b.get() as u64;
    v ^= v >> 20;
    v ^= v >> 40;
    let [low, middle, high, ..] = (v & 0xf_ffff).to_le_bytes();
    let label = u32::from_le_bytes([low, middle, high, 0]);
    let [low, high, ..] = ((label & 0x3fff) ^ (label >> 14 & 0x3f)).to_le_bytes();
    u16::from_le_bytes([low, high]) | 0xc000
}

/// Returns the only endpoint whose queue pair fits `endpoint`, where the formula is believed.
pub(super) fn partner(endpoints: &Endpoints, endpoint: u32) -> Option<u32> {
    let state = endpoints.endpoint(endpoint)?;
    if state.verdict != Verdict::Agree {
        return None;
    }
    let pair = endpoints.pair(state.pair)?;
    if !(pair.own.holds() || pair.own.is_usual() && endpoints.is_alone(endpoint)) {
        return None;
    }
    (endpoints.endpoint(state.fits)?.verdict == Verdict::Agree).then_some(state.fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_of_captured_connections() {
        // Soft-RoCE of Linux 6.1, perftest (tests/captures).
        for (a, b, port) in [
            (0x18, 0x11, 49560),
            (0x19, 0x12, 49602),
            (0x1a, 0x13, 49646),
            (0x1b, 0x14, 49692),
        ] {
            assert_eq!(port_of(Qpn::new(a), Qpn::new(b)), port);
        }
    }

    proptest! {
        #[test]
        fn symmetric_and_ephemeral(a in 0u32..1 << 24, b in 0u32..1 << 24) {
            let (a, b) = (Qpn::new(a), Qpn::new(b));
            prop_assert_eq!(port_of(a, b), port_of(b, a));
            prop_assert!(port_of(a, b) >= 0xc000);
        }
    }
}
