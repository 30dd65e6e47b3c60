//! A worker's end of punt and inject, and the housekeeping thread's.

use std::net::{IpAddr, Ipv6Addr};

use arrayvec::ArrayVec;
use rtrb::{Consumer, RingBuffer};

use super::ask::{self, Ask, Asked, Asker};
use super::bucket::burst;
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

/// Frames a second of each class, and what else is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PuntRates {
    /// In the order of [`PuntClass::ALL`].
    pub classes: [u32; PuntClass::COUNT],
    /// Questions for next hops.
    pub asks: u32,
    /// ICMP errors of our own: so many of packets that are too big, and so many others.
    pub icmp_errors: u32,
}

/// What a worker needs to know to give Linux frames and to take its.
#[derive(Debug, Clone)]
pub struct PuntConfig {
    /// How much at most.
    pub rates: PuntRates,
    /// Each port's interfaces.
    pub ports: Vec<PuntPort>,
    /// The queue of what Linux sends of BFD and routing protocols: strict, and not lossless.
    pub control: Priority,
    /// The queue of ICMP errors, and of what Linux sends whose own queue is lossless: not lossless.
    pub ordinary: Priority,
}

/// A frame that is not forwarded, and why.
#[derive(Debug)]
pub(crate) struct Refusal<B> {
    pub(crate) buf: B,
    pub(crate) reason: DropReason,
}

/// The worker's end.
#[derive(Debug)]
pub struct Punt<B> {
    config: PuntConfig,
    classes: [Class; PuntClass::COUNT],
    asker: Asker,
    /// Of packets that are too big: path MTU discovery needs each, and no flood of others takes it.
    too_big: Shares,
    errors: Shares,
    /// The frames of the burst in hand that are not forwarded.
    pub(crate) aside: ArrayVec<Refusal<B>, BURST>,
}

/// A class's limits.
#[derive(Debug)]
struct Class {
    shares: Shares,
    queue: FrameSender,
}

/// The housekeeping thread's end: what one worker gives Linux.
#[derive(Debug)]
pub struct PuntHost {
    /// Frames by class, in the order of [`PuntClass::ALL`].
    pub classes: [FrameReceiver; PuntClass::COUNT],
    /// Questions for next hops.
    pub asks: Consumer<Ask>,
}

impl<B> Punt<B> {
    /// Both ends; all the memory they ever need is allocated here. `seed` hides which sources share a part of a limit.
    #[must_use]
    pub fn new(config: PuntConfig, seed: u64) -> (Punt<B>, PuntHost) {
        let (ring, asks) = RingBuffer::new(ask::RING);
        let ports = config.ports.len();
        let shares = |rate: u32| Shares::new(rate.into(), burst(rate.into()), ports, seed);
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

    /// The queue of BFD and routing protocols.
    pub(crate) const fn control(&self) -> Priority {
        self.config.control
    }

    /// The queue of ICMP errors.
    pub(crate) const fn ordinary(&self) -> Priority {
        self.config.ordinary
    }

    /// A port's interfaces.
    pub(crate) fn port(&self, port: PortId) -> Option<&PuntPort> {
        self.config.ports.get(port.index())
    }

    /// A port's interfaces are others from now on.
    pub(crate) fn set_port(&mut self, port: PortId, interfaces: PuntPort) {
        if let Some(known) = self.config.ports.get_mut(port.index()) {
            *known = interfaces;
        }
    }

    /// Our address on the interface a frame came in by, else one on any other, for a packet of the family of `sender`.
    pub(crate) fn source(&self, port: PortId, vlan: u16, sender: IpAddr) -> Option<IpAddr> {
        let here = self.port(port).and_then(|port| port.of(vlan));
        let all = self.config.ports.iter().flat_map(|port| &port.interfaces);
        let mut candidates = here.into_iter().chain(all);
        candidates.find_map(|one| match sender {
            IpAddr::V4(_) => one.v4.map(IpAddr::V4),
            IpAddr::V6(_) => one.v6.map(IpAddr::V6),
        })
    }

    /// Gives Linux a frame that came in by `port`, without its tag.
    ///
    /// # Errors
    /// The reason of its class, when that is past its rate or its queue is full.
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

    /// Asks for a next hop, unless that was done lately.
    pub(crate) fn ask(&mut self, ask: Ask, now: Nanos, counters: &PuntCounters) {
        let counter = match self.asker.ask(ask, now) {
            Asked::Sent => &counters.asked,
            Asked::Lately => &counters.asked_lately,
            Asked::OverRate => &counters.ask_over_rate,
            Asked::Full => &counters.ask_full,
        };
        counter.add(1);
    }

    /// Whether one more ICMP error may be made now, for `sender` of a packet that came in by `port`.
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

/// The sender of a frame: of its packet, where it is IP, else by its MAC address.
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
