//! Longest-prefix routing: a RIB, which is authoritative, and two disposable lookup images of it.
//!
//! ```text
//!   Rib (writer's) --batch--> image A   <--lookup-- workers
//!                 `--replay-> image B
//! ```
//! A batch is applied to the image that no worker reads ([`edit`]), one index is stored, and when every worker has passed the
//! top of its loop the batch is replayed on the other image, or the image is copied if that is quicker ([`fib`], `op_log`). So
//! every lookup answers from a complete old or new table. Values are next-hop-group ids resolved through the pair's own array
//! ([`hops`], `hop_table`); the default route is a group of fixed id and never enters an image, so that its change becomes
//! visible with the rest of its batch and costs one group. Routes with the same paths share a group; a group that must change
//! for all its routes at once has an identity (`named_groups`). Flows choose among the members of a group by buckets that
//! survive changes of it ([`buckets`]), by a hash that differs between switches ([`seed`]), and avoid ports that are down
//! ([`down_ports`]).

pub mod buckets;
mod capacity;
pub mod down_ports;
pub mod edit;
pub mod fib;
mod hop_table;
pub mod hops;
mod ids;
pub mod image;
mod named_groups;
pub mod nexthop;
mod op_log;
pub mod prefix;
pub mod seed;
mod warm;
pub mod writer;
