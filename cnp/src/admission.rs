//! Admission of CNPs: the last checks of a contributor before its CNP (port, evidence, spacing), the caps on CNPs, and the reasons for which a contributor
//! got none. `control/eligible.rs` makes the first checks, which refuse most.

use std::net::IpAddr;

use npcc_pipeline::named;
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use crate::control::settings::Settings;
use crate::policy::{Amount, Decision};
use npcc_pipeline::token_bucket::TokenBucket;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::{Evidence, Pairing};

named! {
    /// Reason why a contributor got no CNP.
    pub enum Suppressed {
        /// The sender was signalled too short a time ago.
        Spacing = "spacing",
        /// Packets come back, but the sender's queue pair is known by less than the configured evidence.
        Unpaired = "unpaired",
        /// No packet has come back yet, or the flow is no longer in the table.
        Cold = "cold",
        /// The receiver's own CNP passed a moment ago.
        AlreadyNotified = "already_notified",
        /// The sender's host is doubted: its odds of responding were at the floor for long. It gets CNPs of marks alone.
        Unresponsive = "unresponsive",
        /// The flow put too few bytes into the queue since its last CNP.
        Unearned = "unearned",
        /// The receiver is near, as are those of nearly all of the queue: the flow is left to ECN.
        Gated = "gated",
        /// The flow came in by a port that is not trusted.
        Untrusted = "untrusted",
        /// The sender's host is denied, or others are allowed and it is not. For a mark also: its host is only observed, or the action of its queue
        /// or of the switch is to send nothing.
        HostDenied = "host_denied",
        /// The share of the port that CNPs may take is used up.
        CapPort = "cap_port",
        /// The bucket of CNPs a second is empty.
        CapSecond = "cap_second",
        /// The round may send no more CNPs, or the call may refuse no more contributors, or its deadline is over.
        CapTick = "cap_tick",
        /// No route or no neighbour toward the sender.
        NoNeighbor = "no_neighbor",
        /// The ring to the port's worker is full.
        RingFull = "ring_full",
    }
}

/// A CNP to be sent. The resolver of its next hop builds it with [`npcc_roce::build::CnpSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CnpRequest {
    /// Data flow: `src` is the sender to be signalled, `dst` the receiver in whose name.
    pub flow: FlowKey,
    /// Queue pair at the sender.
    pub sender_qpn: Qpn,
    /// Evidence for the queue pair.
    pub evidence: Evidence,
    /// Port by which the flow comes in.
    pub ingress: PortId,
    /// The congested port.
    pub egress: PortId,
    /// Priority of the congested queue.
    pub priority: Priority,
}

/// Way of CNPs out of the switch. A closure that sends is a `CnpSink` too: its CNPs leave by the port by which their flow came in.
pub trait CnpSink {
    /// Next hop of a CNP.
    type NextHop;

    /// Resolves the next hop to `sender`, whose flow comes in by `ingress`; returns it with its port, whose cap is charged.
    ///
    /// # Errors
    /// [`Suppressed::NoNeighbor`] if there is none.
    fn resolve(
        &mut self,
        sender: IpAddr,
        ingress: PortId,
    ) -> Result<(PortId, Self::NextHop), Suppressed>;

    /// Sends a CNP to the next hop that was resolved for it.
    ///
    /// # Errors
    /// The reason why it was not sent.
    fn hand_over(&mut self, request: CnpRequest, hop: Self::NextHop) -> Result<(), Suppressed>;
}

impl<F: FnMut(CnpRequest) -> Result<(), Suppressed>> CnpSink for F {
    type NextHop = ();

    fn resolve(&mut self, _: IpAddr, ingress: PortId) -> Result<(PortId, ()), Suppressed> {
        Ok((ingress, ()))
    }

    fn hand_over(&mut self, request: CnpRequest, (): ()) -> Result<(), Suppressed> {
        self(request)
    }
}

/// Wire bytes of a CNP: untagged, overhead included.
const WIRE_V4: u64 = 98;
const WIRE_V6: u64 = 118;

/// Properties of a contributor that are checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowCheck {
    pub(crate) ipv6: bool,
    pub(crate) pairing: Pairing,
    /// Time of our latest CNP to its sender.
    pub(crate) signalled: Option<Nanos>,
    /// Time at which a CNP of its receiver passed.
    pub(crate) passed: Option<Nanos>,
    pub(crate) trusted: bool,
    pub(crate) ingress: PortId,
}

/// Caps on CNPs: by port, and of the whole switch.
#[derive(Debug)]
pub(crate) struct CnpCaps {
    ports: Box<[TokenBucket]>,
    second: TokenBucket,
}

impl CnpCaps {
    pub(crate) fn new(settings: &Settings) -> CnpCaps {
        let full = |(rate, burst)| TokenBucket::new(rate, burst);
        let ports = settings.port_rates.iter();
        CnpCaps {
            ports: ports
                .map(|rate| full(of_port(*rate, settings.cap)))
                .collect(),
            second: full(of_all(settings.cap_per_second)),
        }
    }

    /// Replaces the caps, as [`CnpCaps::new`] sets them. The used part of a cap stays used.
    pub(crate) fn reconfigure(&mut self, settings: &Settings, now: Nanos) {
        let (rate, burst) = of_all(settings.cap_per_second);
        self.second.reconfigure(rate, burst, now);
        for (bucket, port) in self.ports.iter_mut().zip(&settings.port_rates) {
            let (rate, burst) = of_port(*port, settings.cap);
            bucket.reconfigure(rate, burst, now);
        }
    }

    /// Number of `contributors` that a decision reaches: the heaviest of those that can be signalled.
    pub(crate) fn flows_reached(decision: &Decision, contributors: usize) -> usize {
        match decision.amount {
            Amount::None => 0,
            Amount::Few => (contributors * usize::from(decision.few))
                .div_ceil(1_000)
                .min(contributors),
            Amount::Many => contributors,
        }
    }

    /// Returns the queue pair to signal, or the reason for none. Caps are charged once the CNP's egress port is known ([`CnpCaps::spend`]).
    pub(crate) fn check(
        settings: &Settings,
        candidate: &FlowCheck,
        decision: &Decision,
        now: Nanos,
    ) -> Result<(Qpn, Evidence), Suppressed> {
        let since = |time: Option<Nanos>| time.map(|at| now.since(at));
        if !candidate.trusted {
            return Err(Suppressed::Untrusted);
        }
        let (qpn, evidence) = match candidate.pairing {
            Pairing::Paired(qpn, evidence) if evidence >= settings.evidence => (qpn, evidence),
            Pairing::Paired(..) | Pairing::Unpaired => return Err(Suppressed::Unpaired),
            Pairing::Cold => return Err(Suppressed::Cold),
        };
        if since(candidate.passed).is_some_and(|passed| passed < decision.spacing) {
            return Err(Suppressed::AlreadyNotified);
        }
        if since(candidate.signalled).is_some_and(|signalled| signalled < decision.spacing) {
            return Err(Suppressed::Spacing);
        }
        Ok((qpn, evidence))
    }

    /// Charges the caps with a CNP that leaves by `port`.
    pub(crate) fn spend(&mut self, port: PortId, ipv6: bool, now: Nanos) -> Result<(), Suppressed> {
        if !self.second.take(now, 1) {
            return Err(Suppressed::CapSecond);
        }
        let bucket = self.ports.get_mut(port.index());
        if !bucket.is_some_and(|bucket| bucket.take(now, wire_bytes(ipv6))) {
            self.second.refund(1);
            return Err(Suppressed::CapPort);
        }
        Ok(())
    }

    /// Returns the charge of a CNP that did not leave.
    pub(crate) fn refund(&mut self, port: PortId, ipv6: bool) {
        self.second.refund(1);
        if let Some(bucket) = self.ports.get_mut(port.index()) {
            bucket.refund(wire_bytes(ipv6));
        }
    }
}

/// Rate and burst in bytes of CNPs that a port of this rate may carry: the burst is a millisecond's worth, and never less than a few CNPs.
fn of_port(rate: BitRate, cap: u16) -> (u64, u64) {
    if rate.0 == 0 {
        return (u64::MAX, u64::MAX);
    }
    let bytes = u64::try_from(u128::from(rate.0) * u128::from(cap) / 8_000).unwrap_or(u64::MAX);
    (bytes, (bytes / 1_000).max(WIRE_V6 * 32))
}

/// Rate and burst of CNPs of the whole switch.
fn of_all(per_second: u64) -> (u64, u64) {
    (per_second, (per_second / 1_000).max(32))
}

const fn wire_bytes(ipv6: bool) -> u64 {
    if ipv6 { WIRE_V6 } else { WIRE_V4 }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
