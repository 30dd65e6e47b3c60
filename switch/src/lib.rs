//! The appliance: all parts around the packet path that reach the outside world.
//!
//! | thread | core | does |
//! |---|---|---|
//! | worker | `cores.workers` | [`npcc_engine::worker`]: receive, walk the pipeline, inject CNPs, send |
//! | control | `cores.control` | [`npcc_engine::control`]: NPCC's tick; no other work of ours |
//! | management | any other | [`manage`]: clients, events, signals, the service manager's watchdog, the progress line |
//! | link | as management | [`manage`]: link state of each device |
//! | checkpoint, under a service manager | as management | [`run`]: counters, pairs and pause storms for the next process |
//! | Linux, where it is integrated | `cores.housekeeping` | [`npcc_engine::linux_io`]: punted frames to Linux, its frames to the workers |
//! | kernel, where it is integrated | as management | `npcc_linux`: routes, neighbours, links |
//! | HTTP, where configured | as management | [`telemetry`]: metrics and the page |
//! | clients, at most 16 a socket | as management | [`manage`]: one request each, a reload included |
//! | log | as management | [`npcc_engine::log`]: writes all text of the process |
//! | reload, at most one | as management | [`run`]: the reload of a SIGHUP, the rollback of a reload that was not committed in time |
//!
//! [`run`] brings them up and takes them down; [`npcc_engine::threads`] names, joins and watches them; [`wiring`] makes the parts from a configuration;
//! [`report`] is the operator's view of them; [`npcc_engine::recorder`] is the record that a crashed run leaves.
#![forbid(unsafe_code)]

pub mod apply;
pub mod manage;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod saved;
pub mod telemetry;
pub mod wiring;
