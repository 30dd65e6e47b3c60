//! New flows per source address are rate-limited, so that one host cannot fill the tables.
//!
//! A fixed table of token buckets; sources that hash to one bucket share its rate.

use npcc_pipeline::units::Nanos;

use crate::key::{FlowKey, KeyHasher, low32};
use crate::token_bucket::TokenBucket;

const BUCKETS: usize = 1024;

#[derive(Debug)]
pub(crate) struct SourceLimit {
    buckets: Box<[TokenBucket]>,
    hasher: KeyHasher,
}

impl SourceLimit {
    pub(crate) fn new(per_second: u64, burst: u64, seed: u64) -> SourceLimit {
        SourceLimit {
            buckets: vec![TokenBucket::new(per_second, burst); BUCKETS].into_boxed_slice(),
            hasher: KeyHasher::new(seed),
        }
    }

    /// Whether the source of this key may have another flow now.
    pub(crate) fn admit(&mut self, key: &FlowKey, now: Nanos) -> bool {
        let bucket = low32(self.hasher.hash(&key.src)) as usize % BUCKETS;
        self.buckets
            .get_mut(bucket)
            .is_some_and(|bucket| bucket.take(now, 1))
    }
}
