//! Ends of punt and inject: the worker's, and the housekeeping thread's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrayvec::ArrayVec;
use rtrb::{Consumer, RingBuffer};

use super::ask::{self, Ask, AskOutcome, Asker};
use super::class::PuntClass;
use super::classify::ForLinux;
use super::icmp::IcmpError;
use super::interface::PuntPort;
use super::layer2::Layer2;
use super::ring::{self, FrameReceiver, FrameSender, Place};
use crate::counters::PuntCounters;
use crate::drop::DropReason;
use crate::shares::{Shares, Source};
use crate::units::{BURST, Nanos, PortId, Priority};
use crate::wire::ethernet;

/// IPv4 dummy address: source of ICMP errors of a node without an IPv4 address (RFC 7600, 4.8).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Rate limits of punt and of the switch's own messages, each in events a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PuntRates {
    /// Frames a second of each class, in the order of [`PuntClass::ALL`].
    pub classes: [u32; PuntClass::COUNT],
    /// Requests a second to resolve next hops.
    pub asks: u32,
    /// ICMP errors a second of our own: this many about packets that are too big, and this many others.
    pub icmp_errors: u32,
}

/// Configuration of a worker for giving Linux frames and taking its frames.
#[derive(Debug, Clone)]
pub struct PuntConfig {
    /// Rate limits.
    pub rates: PuntRates,
    /// Interfaces of each port.
    pub ports: Vec<PuntPort>,
    /// Queue of the BFD and routing-protocol frames that Linux sends: strict, and not lossless.
    pub control: Priority,
    /// Queue of ICMP errors, and of frames from Linux whose own queue is lossless: not lossless itself.
    pub ordinary: Priority,
}

/// A frame that is not forwarded, and its drop reason.
#[derive(Debug)]
pub(crate) struct PuntCandidate<B> {
    pub(crate) buf: B,
    pub(crate) reason: DropReason,
}

/// Worker's end of punt and inject.
#[derive(Debug)]
pub struct Punt<B> {
    config: PuntConfig,
    classes: [Class; PuntClass::COUNT],
    asker: Asker,
    /// Limit of errors about packets that are too big: path MTU discovery needs each, and no flood of others uses it up.
    too_big: Shares,
    errors: Shares,
    /// Frames of the current burst that are not forwarded.
    pub(crate) aside: ArrayVec<PuntCandidate<B>, BURST>,
}

/// Limits of a class.
#[derive(Debug)]
struct Class {
    shares: Shares,
    queue: FrameSender,
}

/// Housekeeping thread's end: what one worker gives Linux.
#[derive(Debug)]
pub struct PuntHost {
    /// Frames by class, in the order of [`PuntClass::ALL`].
    pub classes: [FrameReceiver; PuntClass::COUNT],
    /// Requests to resolve next hops.
    pub asks: Consumer<Ask>,
}

impl<B> Punt<B> {
    /// Returns both ends; all the memory they ever need is allocated here. `seed` hides which sources share a part of a limit.
    #[must_use]
    pub fn new(config: PuntConfig, seed: u64) -> (Punt<B>, PuntHost) {
        let (ring, asks) = RingBuffer::new(ask::RING);
        let ports = config.ports.len();
        let shares = |rate: u32| Shares::new(rate.into(), ask::burst(rate), ports, seed);
        let mut receivers = ArrayVec::<FrameReceiver, { PuntClass::COUNT }>::new();
        let classes = PuntClass::ALL.map(|class| {
            let (queue, receiver) = ring::ring(class.room());
            receivers.push(receiver);
            let shares = shares(*class.pick(&config.rates.classes));
            Class { shares, queue }
        });
        let classes_of_host = receivers
            .into_inner()
            .unwrap_or_else(|_| unreachable!("there is one for each class"));
        let punt = Punt {
            classes,
            asker: Asker::new(ring, config.rates.asks),
            too_big: shares(config.rates.icmp_errors),
            errors: shares(config.rates.icmp_errors),
            aside: ArrayVec::new(),
            config,
        };
        let host = PuntHost {
            classes: classes_of_host,
            asks,
        };
        (punt, host)
    }

    /// Returns the queue of BFD and routing protocols.
    pub(crate) const fn control(&self) -> Priority {
        self.config.control
    }

    /// Returns the queue of ICMP errors.
    pub(crate) const fn ordinary(&self) -> Priority {
        self.config.ordinary
    }

    /// Returns a port's interfaces.
    pub(crate) fn port(&self, port: PortId) -> Option<&PuntPort> {
        self.config.ports.get(port.index())
    }

    /// Replaces a port's interfaces.
    pub(crate) fn set_port(&mut self, port: PortId, interfaces: PuntPort) {
        if let Some(known) = self.config.ports.get_mut(port.index()) {
            *known = interfaces;
        }
    }

    /// Returns our address on the interface a frame arrived on, or on any other if it has none, in the address family of
    /// `sender`; for IPv4 that of RFC 7600 if there is none at all.
    pub(crate) fn source(&self, port: PortId, vlan: u16, sender: IpAddr) -> Option<IpAddr> {
        let here = self.port(port).and_then(|port| port.of(vlan));
        let all = self.config.ports.iter().flat_map(|port| &port.interfaces);
        let mut candidates = here.into_iter().chain(all);
        candidates
            .find_map(|one| match sender {
                IpAddr::V4(_) => one.v4.map(IpAddr::V4),
                IpAddr::V6(_) => one.v6.map(IpAddr::V6),
            })
            .or_else(|| sender.is_ipv4().then_some(IpAddr::V4(DUMMY)))
    }

    /// Returns our link-local address on an interface.
    pub(crate) fn link_local(&self, port: PortId, vlan: u16) -> Option<IpAddr> {
        let here = self.port(port).and_then(|port| port.of(vlan))?;
        here.link_locals.first().map(|own| IpAddr::V6(*own))
    }

    /// Gives Linux a frame received on `port`, without its tag.
    ///
    /// # Errors
    /// Returns the drop reason of its class if that is over its rate or its queue is full.
    pub(crate) fn give(
        &mut self,
        (port, layer2): (PortId, &Layer2),
        frame: &[u8],
        found: ForLinux,
        now: Nanos,
        counters: &PuntCounters,
    ) -> Result<(), DropReason> {
        let class = found.class;
        let (Some(own), Some(counters)) = (
            self.classes.get_mut(class.index()),
            counters.classes.get(class.index()),
        ) else {
            return Err(class.reason());
        };
        let sender = (port, sender(layer2, frame));
        if !own.shares.take(sender, 1, now) {
            counters.over_rate.add(1);
            return Err(class.reason());
        }
        let at = Place {
            port,
            vlan: layer2.vlan,
        };
        let macs = frame.get(..ethernet::HEADER_LEN - 2).unwrap_or_default();
        let rest = frame.get(layer2.l3_off - 2..found.end).unwrap_or_default();
        if !own.queue.push(at, &[macs, rest]) {
            counters.full.add(1);
            return Err(class.reason());
        }
        counters.punted.add(1, (macs.len() + rest.len()) as u64);
        Ok(())
    }

    /// Requests the resolution of a next hop, unless that was done a moment ago.
    pub(crate) fn ask(&mut self, ask: Ask, now: Nanos, counters: &PuntCounters) {
        let counter = match self.asker.ask(ask, now) {
            AskOutcome::Sent => &counters.asked,
            AskOutcome::Lately => &counters.asked_lately,
            AskOutcome::OverRate => &counters.ask_over_rate,
            AskOutcome::Full => &counters.ask_full,
        };
        counter.add(1);
    }

    /// Returns true if one more ICMP error may be made now, for `sender` of a packet received on `port`.
    pub(crate) fn may_tell(
        &mut self,
        error: IcmpError,
        (port, sender): (PortId, IpAddr),
        now: Nanos,
    ) -> bool {
        let shares = match error {
            IcmpError::TooBig(_) => &mut self.too_big,
            _ => &mut self.errors,
        };
        shares.take((port, Source::of_address(sender)), 1, now)
    }
}

/// Returns the sender of a frame: the source address of its IP packet, or of the frame if it is not IP.
fn sender(layer2: &Layer2, frame: &[u8]) -> Source {
    let at = |off: usize, len: usize| frame.get(off..off + len).unwrap_or_default();
    let words = |octets: &[u8]| {
        octets
            .first_chunk()
            .map(|octets| u128::from_be_bytes(*octets))
    };
    match layer2.ethertype {
        ethernet::IPV4 => Source::of_octets(at(layer2.l3_off + 12, 4)),
        ethernet::IPV6 => {
            let address = words(at(layer2.l3_off + 8, 16)).unwrap_or_default();
            Source::of_address(Ipv6Addr::from(address).into())
        }
        _ => Source::of_octets(at(6, 6)),
    }
}
