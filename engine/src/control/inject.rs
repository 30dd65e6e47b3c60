//! Injection of CNPs: from the decision to signal a sender to a CNP in the right port's queue.
//!
//! The control core resolves the next hop and builds the frame; the worker that owns the port copies it into an mbuf and queues it, strict
//! and ahead of the data.

use std::net::IpAddr;

use npcc_cnp::admission::Suppressed;
use npcc_cnp::control::command::{NoPath, Refused};
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::nexthop::{Adjacency, Kind, UNTAGGED};
use npcc_pipeline::units::{PortId, Priority};
use npcc_roce::build::{CnpFrame, CnpHeader, CnpSpec, Vlan};
use npcc_roce::key::{FlowKey, Qpn};
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

/// Command to the injector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectorCommand {
    /// Changes the header of CNPs and the queue they enter, from now on.
    SetHeader(CnpHeader, Priority),
    /// Sends one CNP that an operator requests.
    Send {
        /// Sender to be signalled, and the receiver in whose name; the queue pair of this key is not used.
        hosts: FlowKey,
        /// Queue pair at the sender.
        queue_pair: Qpn,
    },
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

    /// Carries out a command.
    ///
    /// # Errors
    /// Says why a CNP was not sent.
    pub fn execute(&mut self, command: &InjectorCommand) -> Result<(), Refused> {
        match *command {
            InjectorCommand::SetHeader(header, priority) => {
                self.header = header;
                self.priority = priority;
                Ok(())
            }
            InjectorCommand::Send { hosts, queue_pair } => {
                let hop = self.next_hop(hosts.src(), None);
                let hop = hop.ok_or_else(|| Refused::NoPath(self.no_path(hosts.src())))?;
                let sent = self.enqueue(&hop, hosts, queue_pair, None);
                sent.map_err(|_| Refused::RingFull)
            }
        }
    }

    /// Adopts the newest routes; called in every turn of the control core.
    pub fn refresh(&mut self) {
        self.fib.refresh();
    }

    /// Builds a CNP to the source of `flow` and hands it to the worker of the next hop's port; `answers` is the crossing it is the first to answer.
    ///
    /// # Errors
    /// Fails with [`Suppressed::RingFull`].
    pub fn enqueue(
        &mut self,
        hop: &Adjacency,
        flow: FlowKey,
        sender_qpn: Qpn,
        answers: Option<ThresholdCrossing>,
    ) -> Result<(), Suppressed> {
        let vlan = Vlan {
            id: hop.vlan,
            pcp: self.priority,
        };
        let spec = CnpSpec {
            flow,
            sender_qpn,
            dst_mac: hop.dst,
            src_mac: hop.src,
            vlan: (hop.vlan != UNTAGGED).then_some(vlan),
            ip_id: 0,
            header: self.header,
        };
        let ring = self
            .owners
            .get(hop.port.index())
            .and_then(|worker| self.rings.get_mut(*worker));
        let injection = Injection {
            port: hop.port,
            priority: self.priority,
            frame: spec.build(),
            answers,
        };
        ring.and_then(|ring| ring.push(injection).ok())
            .ok_or(Suppressed::RingFull)
    }

    /// Returns the next hop to the sender: by the flow's ingress port, if one is known and is among the equal ones.
    #[must_use]
    pub fn next_hop(&self, sender: IpAddr, ingress: Option<PortId>) -> Option<Adjacency> {
        let mut paths = self
            .fib
            .paths(sender)
            .filter(|path| path.kind == Kind::Forward);
        let first = paths.next()?;
        let Some(ingress) = ingress.filter(|ingress| *ingress != first.port) else {
            return Some(first);
        };
        paths.find(|path| path.port == ingress).or(Some(first))
    }

    /// Returns why no path to this sender leads to a neighbor.
    fn no_path(&self, sender: IpAddr) -> NoPath {
        match self.fib.paths(sender).next().map(|path| path.kind) {
            None | Some(Kind::NoRoute) => NoPath::NoRoute,
            Some(Kind::Unresolved) => NoPath::Unresolved,
            Some(_) => NoPath::NotForwarded,
        }
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
            let hop = injector.next_hop(sender, Some(ingress));
            assert_eq!(hop.map(|hop| hop.port), Some(ingress));
        }
        let any = injector.next_hop(sender, Some(PortId(0))).unwrap();
        assert!(paths.iter().any(|path| path.port == any.port));
        let unknown = injector.next_hop([10, 0, 1, 4].into(), Some(PortId(1)));
        assert!(unknown.is_none());
    }

    /// Law: an ordered CNP goes to the neighbor on the way to its host; where there is none, the order is refused and says why.
    #[test]
    fn an_ordered_cnp_leaves_or_its_refusal_says_what_is_missing() {
        let capacity = RouteCapacity {
            ipv4_routes: 8,
            ipv6_routes: 4,
            adjacencies: 8,
            groups: 8,
        };
        let (mut routes, mut readers) = RouteWriter::new(capacity, 1);
        let neighbor = Mac([2, 0, 0, 0, 9, 1]);
        for (host, kind) in [
            (3, Kind::Forward),
            (4, Kind::Unresolved),
            (5, Kind::Local),
            (6, Kind::Blackhole),
        ] {
            let path = Adjacency {
                port: PortId(1),
                dst: neighbor,
                ..Adjacency::unusable(kind)
            };
            let host = Prefix::host([10, 0, 1, host].into());
            routes.insert(host, &[path]).unwrap();
        }
        routes.commit();
        let (give, mut take) = RingBuffer::new(1);
        let mut injector = Injector::new(
            readers.remove(0),
            CnpHeader::with_dscp(48),
            Priority::new(6),
            vec![give],
            vec![0, 0],
        );
        injector.refresh();
        let mut order = |host: u8| {
            injector.execute(&InjectorCommand::Send {
                hosts: FlowKey::new([10, 0, 1, host].into(), [10, 0, 2, 2].into(), Qpn::new(0)),
                queue_pair: Qpn::new(0x18),
            })
        };
        assert_eq!(order(3), Ok(()));
        assert_eq!(order(3), Err(Refused::RingFull));
        for (host, why) in [
            (4, NoPath::Unresolved),
            (5, NoPath::NotForwarded),
            (6, NoPath::NotForwarded),
            (7, NoPath::NoRoute),
        ] {
            assert_eq!(order(host), Err(Refused::NoPath(why)), "{host}");
        }
        let sent: Injection = take.pop().unwrap();
        assert_eq!((sent.port, sent.priority), (PortId(1), Priority::new(6)));
        assert_eq!(sent.frame.bytes()[..6], neighbor.0);
        assert!(sent.answers.is_none() && take.pop().is_err());
    }
}
