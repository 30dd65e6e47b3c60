//! Prefetches the state that records need before the first of them is processed.
//!
//! With a million flows each endpoint, flow and count lies in memory, and most of them are known only when another has been read:
//!
//! ```text
//!   key -> end -> its flow -> what is shown of it
//!              -> its partner -> the flow that is answered -> what is shown of it
//!                             -> where its sequence numbers are
//!              -> its port's group -> the group opposite
//! ```
//! Processed one by one, every record would wait for all of it, step by step. So each step is made for a batch of records at
//! once: by loads that nothing depends on until the last of them has been issued. The places read here are guesses; their
//! users check the keys.

use std::hint::black_box;

use npcc_pipeline::wire::bth::RoceClass;

use super::{FlowTracker, PREFETCH_ABOVE};
use npcc_roce::fixed_map::{Hints, NONE};
use npcc_roce::pair::psn::is_positive_reply;
use npcc_roce::sample::PacketSample;

/// Places at which the endpoints and flows of records were found, or nearly.
#[derive(Debug, Default)]
pub(super) struct Places {
    endpoints: Hints,
    flows: Hints,
}

impl Places {
    /// Places of the endpoint and the flow of one record.
    pub(super) fn of(&self, record: usize) -> (u32, u32) {
        let hint = |hints: &Hints| hints.get(record).copied().unwrap_or(NONE);
        (hint(&self.endpoints), hint(&self.flows))
    }
}

impl FlowTracker {
    /// Prefetches the state that these records need; returns the places of their endpoints and flows. With few endpoints all of them stay in the core's own
    /// cache, and nothing is done.
    pub(super) fn prefetch(&self, records: &[PacketSample]) -> Places {
        if self.connections.len() <= PREFETCH_ABOVE {
            return Places::default();
        }
        let endpoints = self
            .connections
            .prefetch(records.iter().map(|record| record.key));
        let partners = self.connections.prefetch_partners(&endpoints);
        let flow_of = |endpoint: u32| self.connections.flow_hint(endpoint);
        let pairs = records.iter().zip(endpoints.iter().zip(&partners));
        let flows: Hints = pairs
            .map(|(record, (endpoint, partner))| match record.class {
                RoceClass::Data | RoceClass::Datagram => flow_of(*endpoint),
                _ => flow_of(*partner),
            })
            .collect();
        self.flows.prefetch_listed(&flows);
        let answers = records.iter().zip(&partners);
        let mut sum = 0;
        for (_, partner) in answers.filter(|(record, _)| is_positive_reply(record)) {
            let request = self.connections.request_slot(*partner);
            let reading = request.and_then(|(reader, slot)| self.readers.get(reader)?.read(slot));
            sum ^= reading.map_or(0, |reading| reading.packets);
        }
        black_box(sum);
        self.connections.prefetch_opposite(&endpoints);
        Places { endpoints, flows }
    }
}
