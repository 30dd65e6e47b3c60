//! Closed-loop applications: a graph of operations per rank in the sense of GOAL, executed over the simulated queue pairs.
//!
//! ```text
//!   kind (ring-allreduce ...) -> make  \
//!                                       job (graph, ranks on hosts) -> run (state machine) <-> engine: connections
//!   GOAL text                 -> goal  /            `-> roofline                 `-> figures: step time, JCT ratio, busbw
//! ```
//! Law: an operation starts when those it requires are done; a rank begins its next step when its own operations of the last are
//! done; a message goes whole over one queue pair. Nothing here knows the engine.

mod figures;
mod goal;
mod graph;
mod make;
mod roofline;
mod run;

pub use figures::{ApplicationOutcome, interference};
pub use goal::{GoalError, read as read_goal};
pub use graph::{Graph, Operation, Work};
pub use make::{Job, Kind, Shape};
pub(crate) use roofline::{Hop, Path, roofline};
pub(crate) use run::{Action, Message, Moment, Pace, Running};
