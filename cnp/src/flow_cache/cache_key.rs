//! Key of a flow in one queue as the cache compares it: two words, and the addresses of IPv6, octet by octet.

use npcc_pipeline::burst::{QueueKey, Record};
use npcc_pipeline::frame::MetaFlags;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{PortId, Priority};
use npcc_pipeline::wire::ipv6;

use npcc_roce::key::{FlowKey, Qpn, low32, pair_of, queue_bits};

/// Source and destination of an IPv6 packet as they stand in its header; zeros for IPv4.
pub(super) type Addresses = [u8; 32];

/// Key of a flow in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheKey {
    /// See [`pair_of`].
    pub(super) pair: [u64; 2],
    pub(super) addresses: Addresses,
}

impl CacheKey {
    /// Key of a RoCEv2 packet in a frame as it is sent; `queue` is [`queue_bits`]. `None` if the frame is too short for its addresses.
    #[inline]
    pub(super) fn of_known(known: &Record, frame: &[u8], queue: u64) -> Option<CacheKey> {
        let addresses = if known.flags.has(MetaFlags::IPV6) {
            *addresses_as_sent(frame, known.flags)?
        } else {
            [0; 32]
        };
        Some(CacheKey {
            pair: pair_of(known, queue),
            addresses,
        })
    }

    /// Key of a frame that was parsed; `None` if it is too short for its addresses.
    pub(super) fn of_sighting(sighting: &Sighting<'_>) -> Option<CacheKey> {
        let meta = sighting.meta;
        let known = Record {
            addresses: sighting.addresses,
            ..Record::of(sighting.parsed, meta.len)
        };
        let addresses = if sighting.parsed.is_v6() {
            *addresses_of(sighting.data, sighting.parsed.l3_off.into())?
        } else {
            [0; 32]
        };
        Some(CacheKey {
            pair: pair_of(&known, queue_bits(meta.egress, meta.priority)),
            addresses,
        })
    }

    #[inline]
    pub(super) const fn is_v4(&self) -> bool {
        self.pair[0] & Record::V6 as u64 == 0
    }

    /// Queue of the flow.
    pub(super) const fn queue(&self) -> QueueKey {
        let [_, _, _, _, egress, priority, ..] = self.pair[0].to_le_bytes();
        QueueKey::new(PortId(egress), Priority::new(priority))
    }

    /// Key of the flow, without its queue.
    pub(super) fn flow(&self) -> FlowKey {
        let [tail, addresses] = self.pair;
        let qpn = Qpn::new(low32(tail));
        if self.is_v4() {
            let [src, dst] =
                [addresses >> 32, addresses].map(|address| low32(address).to_be_bytes());
            return FlowKey::new(src.into(), dst.into(), qpn);
        }
        let (halves, _) = self.addresses.as_chunks::<16>();
        let address = |half: usize| *halves.get(half).unwrap_or(&[0; 16]);
        FlowKey::new(address(0).into(), address(1).into(), qpn)
    }
}

/// Addresses of an IPv6 packet whose header begins at `l3_off`.
#[inline(always)]
pub(super) fn addresses_of(frame: &[u8], l3_off: usize) -> Option<&Addresses> {
    frame.get(l3_off + ipv6::ADDRESSES..)?.first_chunk()
}

/// [`addresses_of`] a frame as it is sent.
#[inline(always)]
pub(super) fn addresses_as_sent(frame: &[u8], flags: MetaFlags) -> Option<&Addresses> {
    addresses_of(frame, flags.l3_off())
}
