//! Rate limit on new entries by one source address at one port, so that one host cannot fill the tables.
//!
//! A fixed table of token buckets; sources that hash to one bucket share its rate. The port is part of the hash: packets with another
//! host's address that come by another port take nothing of that host's rate.

use npcc_pipeline::units::{Nanos, PortId};

use crate::key::{FlowKey, KeyHasher};
use npcc_pipeline::token_bucket::TokenBucket;

const BUCKETS: usize = 1024;

/// Limit on the entries that a source may begin: see the module's text.
#[derive(Debug)]
pub struct SourceLimit {
    buckets: Box<[TokenBucket]>,
    hasher: KeyHasher,
}

impl SourceLimit {
    /// Makes a limit of `per_second` entries a source, with bursts of `burst`; `seed` keys the hash of sources.
    pub fn new(per_second: u64, burst: u64, seed: u64) -> SourceLimit {
        SourceLimit {
            buckets: vec![TokenBucket::new(per_second, burst); BUCKETS].into_boxed_slice(),
            hasher: KeyHasher::new(seed),
        }
    }

    /// Returns true if the source of this key may begin another entry now, at the port its packets come by.
    pub fn admit(&mut self, key: &FlowKey, ingress: PortId, now: Nanos) -> bool {
        let bucket = self.hasher.source(key, ingress, BUCKETS);
        self.buckets
            .get_mut(bucket)
            .is_some_and(|bucket| bucket.take(now, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Qpn;
    use std::net::IpAddr;

    /// Regression: packets with a host's address that came by another port used up that host's rate.
    #[test]
    fn what_comes_by_another_port_takes_nothing_of_a_sources() {
        let mut limit = SourceLimit::new(1_000, 10, 5);
        let (a, b) = (IpAddr::from([10, 0, 1, 3]), IpAddr::from([10, 0, 2, 2]));
        let key = FlowKey::new(a, b, Qpn::new(2));
        let forged = (0..100).filter(|_| limit.admit(&key, PortId(1), Nanos(1)));
        assert_eq!(forged.count(), 10);
        let own = (0..100).filter(|_| limit.admit(&key, PortId(0), Nanos(1)));
        assert_eq!(own.count(), 10);
    }
}
