//! Leases: what the agent on a sender's host reports about a connection, some time after it starts.

use std::net::IpAddr;

use npcc_roce::key::FlowKey;
use npcc_roce::pair::foreign::view::Reports;
use npcc_roce::pair::foreign::{HOLDS, PeerId, Report, ReportedEnd};
use npcc_roce::source_check::Routes;

use super::Engine;

/// Routes that put every host behind every port: scenarios have no made-up reports.
#[derive(Debug)]
pub(crate) struct Anywhere;

impl Routes for Anywhere {
    fn refresh(&mut self) -> u64 {
        0
    }

    fn ports_toward(&self, _: IpAddr) -> u32 {
        u32::MAX
    }
}

impl Engine {
    /// Gives every switch the queue pairs of a connection; queues them for an external switch ([`super::Live::reported`]).
    pub(super) fn lease(&mut self, index: usize) {
        let (now, flow) = (self.now, &self.flows[index]);
        let back = &flow.back;
        let end = ReportedEnd {
            key: FlowKey::new(back.src.into(), back.dst.into(), back.dest_qp),
            udp_port: back.port,
            partner: Some(flow.forward.dest_qp),
            holds: HOLDS,
        };
        if self.outside.is_some() {
            self.reported.push_back(end);
        }
        let reports = Reports::new(PeerId(0), Box::new([Report::Seen(end)]));
        for core in self
            .switches
            .iter_mut()
            .filter_map(|switch| switch.core.as_mut())
        {
            core.take_report(&reports, 0, now);
        }
    }
}
