//! Threads that move frames: workers, the control core, and the exchange of frames with Linux; with their clock, log and records of a crash.
//!
//! | thread | core | does |
//! |---|---|---|
//! | worker | `cores.workers` | [`worker`]: receive, walk the pipeline, inject CNPs, send |
//! | control | `cores.control` | [`control`]: NPCC's tick; no other work of ours |
//! | Linux, where it is integrated | `cores.housekeeping` | [`linux_io`]: punted frames to Linux, its frames to the workers |
//! | log | as management | [`log`]: writes all text of the process |
//!
//! [`threads`] names, joins and watches them; [`recorder`] is the record that a crashed run leaves. Configuration, management and metrics
//! are `npcc-appliance`'s, which nothing here knows.
#![forbid(unsafe_code)]

pub mod clock;
pub mod control;
pub mod fault;
pub mod linux_io;
pub mod log;
pub mod notify;
pub mod recorder;
pub mod sleep;
pub mod store;
pub mod threads;
pub mod worker;
