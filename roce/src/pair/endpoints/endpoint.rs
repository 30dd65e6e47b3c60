//! State of one endpoint.

use npcc_pipeline::units::Nanos;

use super::port_majority::PortMajority;
use super::psn_state::PsnState;
use super::psns::SentPsns;
use crate::holdings::Holder;
use crate::key::Qpn;
use crate::links::{Links, NONE};
use crate::pair::pair_state::Verdict;
use crate::pair::transport::Transport;
use crate::sample::SlotRef;

/// Activity of an endpoint, by its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// No packet lately, or none but of a connection that has ended.
    Silent,
    /// Packets only since a moment ago.
    New,
    /// Packets for a while, until now.
    Active,
}

/// State of an endpoint: a queue pair as packets from one address to another name it.
///
/// In the order of use, a line of 64 bytes a paragraph: fields that every record needs, that pairs by numbers and datagrams need,
/// that requests need, and two lines of rarely used ones.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Endpoint {
    pub(crate) last_seen: Nanos,
    pub(crate) packets: u64,
    pub(crate) packets_at_change: u64,
    counted: Counted,
    /// Index of the endpoint's address pair.
    pub(crate) pair: u32,
    /// Index of the group of endpoints with the same port and direction.
    pub(crate) group: u32,
    /// Index of the partner last found.
    pub(in crate::pair) partner: u32,
    /// Index of the endpoint's entry in the flow table, if its packets wait in a watched queue; a hint.
    pub flow: u32,
    /// Index of the only endpoint whose queue pair fits by the hash, while the verdict is that there is one.
    pub(in crate::pair) fits: u32,
    pub(crate) verdict: Verdict,
    pub(crate) transport: Transport,
    /// True if the connection manager gave it a flow label: its port is no hash of queue pairs.
    pub(crate) labelled: bool,
    pub(super) port_changes: u8,

    /// Pairing by sequence numbers.
    pub(in crate::pair) psn: PsnState,
    /// Sender of the last datagram to it; meaningless for a queue pair of a connection.
    pub(in crate::pair) sender: Qpn,
    pub(super) port: Option<u16>,
    /// Number of endpoints made before it: another endpoint at this place has another.
    pub(in crate::pair) serial: u32,
    /// Time at which its present use began, as far as is known.
    pub(in crate::pair) began: Nanos,
    /// Time until which no sender to it is believed: another transport or another datagrams' sender was just seen.
    pub(in crate::pair) suspect_until: Nanos,

    /// Sequence numbers of requests to the endpoint.
    pub(in crate::pair) sent: SentPsns,

    /// Neighbours in the endpoint's group.
    pub(in crate::pair) grouped: Links,
    /// Time at which a CNP to this queue pair passed through.
    pub cnp_passed: Option<Nanos>,
    /// Time at which we last signalled the *sender of this endpoint's flow*.
    pub signalled: Option<Nanos>,

    /// Holder of the entry while it is not paired.
    pub(in crate::pair) holder: Holder,
    /// Doubt of an endpoint whose packets had several ports.
    pub(super) majority: PortMajority,
    /// Time at which a reply last had a number that cannot answer requests to the only endpoint with the same UDP source port in the other direction.
    pub(in crate::pair) misfit: Nanos,
    /// Time at which it was last exported, and its port then; `None` if it was not.
    pub(in crate::pair) exported: Option<(Nanos, u16)>,
    /// Verdict of the port hash by own and reported ends together.
    pub(in crate::pair) shared: Verdict,
}

const _: () = assert!(size_of::<Endpoint>() == 320);

/// Reader and slot in which an endpoint's packets were last counted, and their number there.
#[derive(Debug, Clone, Copy)]
struct Counted {
    slot: SlotRef,
    packets: u32,
    /// Index of the reader; [`NONE`] if not counted yet.
    reader: u32,
}

impl Counted {
    const NOWHERE: Counted = Counted {
        slot: SlotRef::NONE,
        packets: 0,
        reader: NONE,
    };
}

impl Endpoint {
    /// Reads the lines that a record needs, to bring them into the cache.
    pub(super) fn look(&self) -> u64 {
        self.last_seen.0 ^ u64::from(self.port.is_some())
    }

    /// Adds a worker's count of this endpoint's packets in one queue.
    pub(crate) fn count(&mut self, reader: usize, slot: SlotRef, packets: u32) {
        let reader = u32::try_from(reader).unwrap_or(NONE);
        let known = self.counted;
        let fresh = if (known.reader, known.slot) == (reader, slot) {
            packets.wrapping_sub(known.packets)
        } else {
            // Another queue, or a reused slot: only this packet is sure to be uncounted.
            1
        };
        self.packets += u64::from(fresh);
        self.counted = Counted {
            slot,
            packets,
            reader,
        };
    }

    /// Reader and slot in which its packets were last counted.
    pub(in crate::pair) fn counted_at(&self) -> Option<(usize, SlotRef)> {
        let Counted { slot, reader, .. } = self.counted;
        (reader != NONE).then_some((reader as usize, slot))
    }

    pub(super) fn new(transport: Transport, pair: u32, serial: u32, now: Nanos) -> Endpoint {
        Endpoint {
            transport,
            sender: Qpn::default(),
            serial,
            began: now,
            suspect_until: Nanos::ZERO,
            verdict: Verdict::Silent,
            fits: NONE,
            port: None,
            port_changes: 0,
            pair,
            group: NONE,
            grouped: Links::NONE,
            sent: SentPsns::new(),
            psn: PsnState::new(),
            labelled: false,
            partner: NONE,
            last_seen: now,
            packets: 0,
            packets_at_change: 0,
            counted: Counted::NOWHERE,
            flow: NONE,
            cnp_passed: None,
            signalled: None,
            majority: PortMajority::of(Nanos::ZERO),
            misfit: Nanos::ZERO,
            exported: None,
            shared: Verdict::Silent,
            holder: Holder::NOBODY,
        }
    }
}
