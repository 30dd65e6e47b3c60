//! Budget of a worker for what new flows cost it, shared out by ingress port and source: showing packets to the control core, and giving flows
//! their slots.
//!
//! A packet that is about to be shown costs an ICRC, which takes time in proportion to its length, and costs the control core the work of a record,
//! whether its ICRC is right or wrong. The [pace](super::pace) limits what each flow shows in the long run, but not a flood of new
//! flows, of CNPs or of ports: these are limited here, before they cost either, and a source that stays below its part loses none.
//!
//! A new flow's slot is chosen by the ages of eight, each in a line of its own and most of them far away: as much as ten packets that are only
//! counted. Above the limit a flow waits for one of its next packets, which are forwarded as any other.

use npcc_pipeline::shares::{Shares, Source};
use npcc_pipeline::units::{MAX_PORTS, Nanos, PortId};

/// Bytes per second that are checked: 244,000 packets of 4 KiB, or 977,000 short ones, either of which is a quarter of a worker.
const BYTES: u64 = 1_000_000_000;
/// Cost of a short packet, in bytes: that of its parsing and of the record it makes.
const LEAST: u64 = 1_024;
/// Burst in bytes that is checked for each source, whatever others send.
const BURST: u64 = 1 << 18;
/// Burst in bytes that is checked for the first sources to come: the first eight packets of 32,768 connections, if they are short.
const RESERVE: u64 = 1 << 28;
/// New flows per second that are given a slot, and the burst of each source.
const NEWCOMERS: (u64, u64) = (1_000_000, 256);
/// Burst of new flows for the first sources to come.
const NEWCOMERS_RESERVE: u64 = 1 << 18;
/// Messages of the connection manager per second, and the burst of each source.
const MESSAGES: (u64, u64) = (1_000_000, 64);
/// Burst of messages for the first sources to come.
const MESSAGES_RESERVE: u64 = 8_192;

/// Budget of a worker: see the module's text.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: Shares,
    messages: Shares,
    newcomers: Shares,
}

impl Budget {
    pub(super) fn new(seed: u64) -> Budget {
        let (rate, burst) = MESSAGES;
        let (flows, each) = NEWCOMERS;
        Budget {
            newcomers: Shares::new(flows, each, MAX_PORTS, seed).with_reserve(NEWCOMERS_RESERVE),
            bytes: Shares::new(BYTES, BURST, MAX_PORTS, seed).with_reserve(RESERVE),
            messages: Shares::new(rate, burst, MAX_PORTS, seed).with_reserve(MESSAGES_RESERVE),
        }
    }

    /// Returns true if a packet of `len` bytes may be checked and shown now.
    pub(super) fn admits(&mut self, from: (PortId, Source), len: u16, now: Nanos) -> bool {
        self.bytes
            .take(from, u64::from(len).clamp(LEAST, BURST), now)
    }

    /// Returns true if a new flow may be given a slot now.
    pub(super) fn admits_newcomer(&mut self, from: (PortId, Source), now: Nanos) -> bool {
        self.newcomers.take(from, 1, now)
    }

    /// Returns true if a message of the connection manager may be copied now.
    pub(super) fn admits_message(&mut self, from: (PortId, Source), now: Nanos) -> bool {
        self.messages.take(from, 1, now)
    }
}
