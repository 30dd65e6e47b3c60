//! Longest-prefix routing: a RIB that is the truth, and two disposable lookup images of it.
//!
//! ```text
//!   Rib (writer's) --batch--> image A   <--lookup-- workers
//!                 `--replay-> image B
//! ```
//! A batch goes to the image nobody reads ([`edit`]), one index is stored, and when every worker has passed the top of its
//! loop the batch is replayed on the other, or the image copied when that is quicker ([`fib`], `journal`). So every lookup answers from a complete old or new table.
//! Values are next-hop-group ids resolved through one array ([`nexthop`]); the default route is group 0 and never
//! enters an image.

pub mod edit;
pub mod fib;
pub mod image;
mod journal;
pub mod nexthop;
pub mod prefix;
mod warm;
pub mod writer;
