//! Lab: measures the switch, and makes its traffic.
//!
//! | module | does |
//! |---|---|
//! | [`mod@bench`] | runs the switch between an endless source and a sink and counts |
//! | [`instruments`] | the probe of a measured worker: a paced source, traffic templates |
//! | [`traffic`] | valid RoCEv2 frames from a few numbers |
//! | [`prefixes`] | files of prefixes |
//! | [`realtime`] | the simulator's hosts in real time around a switch process |
//!
//! The switch knows nothing of it: `npcc-switch run` uses these parts only when its hidden options request them.
#![forbid(unsafe_code)]

pub mod bench;
pub mod instruments;
pub mod pace;
pub mod prefixes;
pub mod realtime;
pub mod template;
pub mod traffic;
