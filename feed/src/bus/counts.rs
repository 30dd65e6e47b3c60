//! Counters of the bus.

use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

macro_rules! counts {
    ($( $(#[$doc:meta])* $field:ident, )+) => {
        /// Counters of the bus, written by the tasks of one thread.
        #[derive(Debug, Default)]
        pub struct BusCounts {
            $( $(#[$doc])* pub(crate) $field: AtomicU64, )+
        }

        /// Values of [`BusCounts`] at one time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
        pub struct BusCounted {
            $( $(#[$doc])* pub $field: u64, )+
        }

        impl BusCounts {
            /// Returns the values.
            #[must_use]
            pub fn values(&self) -> BusCounted {
                BusCounted { $( $field: self.$field.load(Ordering::Relaxed), )+ }
            }
        }
    };
}

counts! {
    /// Connections made to a server, the first and after failures.
    connected,
    /// Connections lost.
    disconnected,
    /// Messages published.
    published,
    /// Bytes published.
    published_bytes,
    /// Times at which a message had to wait because the queue to the server was full.
    full,
    /// Messages of records that were dropped because the bus was full or down, or refused.
    records_dropped,
    /// Messages received.
    received,
    /// Messages dropped because this feed took them too slowly.
    slow,
    /// Errors that the server reported, such as a subject that this box may not use, and messages longer than it takes.
    refused,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
