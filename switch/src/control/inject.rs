//! Injection of CNPs: from the decision to signal a sender to a CNP in the right port's queue.
//!
//! The control core resolves the next hop and builds the frame; the worker that owns the port copies it into an mbuf and queues it, strict
//! and ahead of the data.

use std::net::IpAddr;

use npcc_cnp::admission::{CnpRequest, Suppressed};
use npcc_cnp::build::{CnpFrame, CnpHeader, CnpSpec, Vlan};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::units::{PortId, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::control::crossing_timing::ThresholdCrossing;

/// Capacity of the ring of CNPs to one worker: more than a tick's worth at any sensible cap.
const RING: usize = 4096;

/// Finished CNP for one port.
#[derive(Debug, Clone, Copy)]
pub struct Injection {
    /// Port it leaves by.
    pub port: PortId,
    /// Queue it enters.
    pub priority: Priority,
    /// Frame of the CNP.
    pub frame: CnpFrame,
    /// Crossing that this CNP is the first to answer.
    pub answers: Option<ThresholdCrossing>,
}

/// Makes the ring to one worker.
#[must_use]
pub fn ring() -> (Producer<Injection>, Consumer<Injection>) {
    RingBuffer::new(RING)
}

/// Builds CNPs and hands them to the workers.
#[derive(Debug)]
pub struct Injector {
    fib: FibReader,
    header: CnpHeader,
    priority: Priority,
    rings: Vec<Producer<Injection>>,
    owners: Vec<usize>,
}

impl Injector {
    /// Builds CNPs of this header for queue `priority`; `owners` names for each port the index of its worker's ring in `rings`.
    #[must_use]
    pub fn new(
        fib: FibReader,
        header: CnpHeader,
        priority: Priority,
        rings: Vec<Producer<Injection>>,
        owners: Vec<usize>,
    ) -> Injector {
        Injector {
            fib,
            header,
            priority,
            rings,
            owners,
        }
    }

    /// Changes the header of CNPs and the queue they enter, from now on.
    pub const fn set_cnp_header(&mut self, header: CnpHeader, priority: Priority) {
        self.header = header;
        self.priority = priority;
    }

    /// Adopts the newest routes; called in every turn of the control core.
    pub fn refresh(&mut self) {
        self.fib.refresh();
    }

    /// Hands one CNP to its worker; `answers` is the crossing it is the first to answer.
    ///
    /// # Errors
    /// Gives the reason why it was not sent.
    pub fn enqueue(
        &mut self,
        request: &CnpRequest,
        answers: Option<ThresholdCrossing>,
    ) -> Result<(), Suppressed> {
        let path = self
            .path_to(request.flow.src(), request.ingress)
            .ok_or(Suppressed::NoNeighbor)?;
        let vlan = Vlan {
            id: path.vlan,
            pcp: self.priority,
        };
        let spec = CnpSpec {
            flow: request.flow,
            sender_qpn: request.sender_qpn,
            dst_mac: path.dst,
            src_mac: path.src,
            vlan: (path.vlan != UNTAGGED).then_some(vlan),
            ip_id: 0,
            header: self.header,
        };
        let ring = self
            .owners
            .get(path.port.index())
            .and_then(|worker| self.rings.get_mut(*worker));
        let injection = Injection {
            port: path.port,
            priority: self.priority,
            frame: spec.build(),
            answers,
        };
        ring.and_then(|ring| ring.push(injection).ok())
            .ok_or(Suppressed::RingFull)
    }

    /// Returns the port by which a CNP to the sender of a flow from `ingress` leaves.
    ///
    /// # Errors
    /// Fails with [`Suppressed::NoNeighbor`] if there is no path to the sender.
    pub fn leaves_by(&self, sender: IpAddr, ingress: PortId) -> Result<PortId, Suppressed> {
        let path = self.path_to(sender, ingress);
        path.map(|path| path.port).ok_or(Suppressed::NoNeighbor)
    }

    /// Returns the path to the sender: by the flow's ingress port if that is among the equal ones.
    fn path_to(&self, sender: IpAddr, ingress: PortId) -> Option<Adjacency> {
        let mut paths = self
            .fib
            .paths(sender)
            .filter(|path| path.kind == Kind::Forward);
        let first = paths.next()?;
        if first.port == ingress {
            return Some(first);
        }
        paths.find(|path| path.port == ingress).or(Some(first))
    }
}

#[cfg(test)]
mod tests {
    use npcc_pipeline::route::prefix::Prefix;
    use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
    use npcc_pipeline::units::Mac;

    use super::*;

    /// Law: of equal paths to a sender, a CNP takes that by which its flow came in; where that is none of them, any.
    #[test]
    fn a_cnp_leaves_by_the_port_that_its_flow_came_in_by() {
        let capacity = RouteCapacity {
            ipv4_routes: 4,
            ipv6_routes: 4,
            adjacencies: 8,
            groups: 4,
        };
        let (mut routes, mut readers) = RouteWriter::new(capacity, 1);
        let paths = [1, 2, 3].map(|port| Adjacency {
            port: PortId(port),
            dst: Mac([2, 0, 0, 0, 9, port]),
            ..Adjacency::unusable(Kind::Forward)
        });
        let sender: IpAddr = [10, 0, 1, 3].into();
        routes.insert(Prefix::host(sender), &paths).unwrap();
        routes.commit();
        let header = CnpHeader::with_dscp(48);
        let fib = readers.remove(0);
        let mut injector = Injector::new(fib, header, Priority::new(6), Vec::new(), Vec::new());
        injector.refresh();
        for ingress in [1, 2, 3].map(PortId) {
            assert_eq!(injector.leaves_by(sender, ingress), Ok(ingress));
        }
        let any = injector.leaves_by(sender, PortId(0)).unwrap();
        assert!(paths.iter().any(|path| path.port == any));
        let unknown = injector.leaves_by([10, 0, 1, 4].into(), PortId(1));
        assert_eq!(unknown, Err(Suppressed::NoNeighbor));
    }
}
