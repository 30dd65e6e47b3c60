//! What is known of one end.

use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::bth::{RoceClass, is_uc};

use super::doubt::Doubt;
use super::numbers::Sent;
use super::psn_state::PsnState;
use crate::holdings::Holder;
use crate::key::Qpn;
use crate::links::{Links, NONE};
use crate::pair::pair_state::Verdict;
use crate::sample::{Record, SlotRef};

/// The transport of the queue pair that packets name. Worlds apart: what is known of a number in one says nothing of it in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagrams.
    Ud,
}

impl Transport {
    /// Of a packet's queue pair; `None` for a CNP, which may go to any.
    pub(crate) const fn of(record: &Record) -> Option<Transport> {
        match record.class {
            RoceClass::Cnp => None,
            RoceClass::Datagram => Some(Transport::Ud),
            _ => Some(Transport::of_connection(is_uc(record.opcode))),
        }
    }

    /// Of a connection's queue pair.
    pub(crate) const fn of_connection(uc: bool) -> Transport {
        if uc { Transport::Uc } else { Transport::Rc }
    }

    /// Whether it is unreliable connection.
    pub(crate) const fn is_uc(self) -> bool {
        matches!(self, Transport::Uc)
    }

    /// Whether it is datagrams.
    pub(crate) const fn is_ud(self) -> bool {
        matches!(self, Transport::Ud)
    }
}

/// Whether packets of an end are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not lately, or none but of a connection that has ended.
    Silent,
    /// Only since a moment ago.
    New,
    /// For a while, until now.
    Living,
}

/// One end: a queue pair as packets from one address to another name it.
///
/// In the order of use, a line of 64 bytes a paragraph: what every record needs, what pairs by numbers and datagrams need,
/// what requests need, and twice what is rarely asked for.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct End {
    pub(crate) last_seen: Nanos,
    pub(crate) packets: u64,
    pub(crate) packets_at_change: u64,
    counted: Counted,
    /// Its address pair.
    pub(crate) pair: u32,
    /// Ends with the same port and direction.
    pub(crate) group: u32,
    /// Whom it was last found to belong to.
    pub(in crate::pair) partner: u32,
    /// The flow table's entry of this end, if its packets wait in a watched queue; a hint.
    pub(crate) flow: u32,
    /// The only end whose queue pair fits by the hash, while the verdict is that there is one.
    pub(in crate::pair) fits: u32,
    pub(crate) verdict: Verdict,
    pub(crate) transport: Transport,
    /// The connection manager gave it a flow label: its port is no hash of queue pairs.
    pub(crate) labelled: bool,
    pub(super) port_changes: u8,

    /// Whose its sequence numbers fit.
    pub(in crate::pair) psn: PsnState,
    /// Who sent the last datagram to it; of no meaning for a queue pair of a connection.
    pub(in crate::pair) sender: Qpn,
    pub(super) port: Option<u16>,
    /// The number of ends made before it: another end at this place has another.
    pub(in crate::pair) serial: u32,
    /// When its present use began, as far as is known.
    pub(in crate::pair) began: Nanos,
    /// Until then nobody is believed to send to it: another transport or another datagrams' sender was just seen.
    pub(in crate::pair) doubted_until: Nanos,

    /// Sequence numbers of requests to it.
    pub(in crate::pair) sent: Sent,

    /// Neighbours among the ends of the same direction between these addresses.
    pub(in crate::pair) side: Links,
    /// Neighbours in its group.
    pub(in crate::pair) grouped: Links,
    /// When a CNP to this queue pair passed through.
    pub(crate) cnp_passed: Option<Nanos>,
    /// When we last signalled the *sender of this end's flow*.
    pub(crate) signalled: Option<Nanos>,
    /// When the queue pair this end names was last signalled among all of its host's.
    pub(crate) signalled_among: Option<Nanos>,

    /// Whose it is while it is not paired.
    pub(in crate::pair) holder: Holder,
    /// Of an end whose packets had several ports.
    pub(super) doubt: Doubt,
    /// When an answer last spoke against the only end with the same port in the other direction.
    pub(in crate::pair) misfit: Nanos,
}

const _: () = assert!(size_of::<End>() == 320);

/// Where an end's packets were last counted, and how many there.
#[derive(Debug, Clone, Copy)]
struct Counted {
    slot: SlotRef,
    packets: u32,
    /// [`NONE`] for nowhere.
    reader: u32,
}

impl Counted {
    const NOWHERE: Counted = Counted {
        slot: SlotRef::NONE,
        packets: 0,
        reader: NONE,
    };
}

impl End {
    /// Something of the lines that a record needs.
    pub(super) fn look(&self) -> u64 {
        self.last_seen.0 ^ u64::from(self.port.is_some())
    }

    /// Takes in a worker's count of this end's packets in one queue.
    pub(crate) fn count(&mut self, reader: usize, slot: SlotRef, packets: u32) {
        let reader = u32::try_from(reader).unwrap_or(NONE);
        let known = self.counted;
        let fresh = if (known.reader, known.slot) == (reader, slot) {
            packets.wrapping_sub(known.packets)
        } else {
            // Another queue, or a slot given anew: only this packet is sure to be uncounted.
            1
        };
        self.packets += u64::from(fresh);
        self.counted = Counted {
            slot,
            packets,
            reader,
        };
    }

    /// Where its packets were last counted: reader and slot.
    pub(in crate::pair) fn counted_at(&self) -> Option<(usize, SlotRef)> {
        let Counted { slot, reader, .. } = self.counted;
        (reader != NONE).then_some((reader as usize, slot))
    }

    pub(super) fn new(transport: Transport, pair: u32, serial: u32, now: Nanos) -> End {
        End {
            transport,
            sender: Qpn::default(),
            serial,
            began: now,
            doubted_until: Nanos::ZERO,
            verdict: Verdict::Silent,
            fits: NONE,
            port: None,
            port_changes: 0,
            pair,
            group: NONE,
            grouped: Links::NONE,
            side: Links::NONE,
            sent: Sent::new(),
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
            signalled_among: None,
            doubt: Doubt::of(Nanos::ZERO),
            misfit: Nanos::ZERO,
            holder: Holder::NOBODY,
        }
    }
}
