//! Tests of the program as a process, by subject; each test makes its own ports, namespaces and files.
#![allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect, and its numbers are small"
)]

mod api;
mod beneath;
mod capture;
mod card_test;
mod cards;
mod cli;
mod cnp_send;
mod common;
mod control_plane;
mod crashes;
mod docs;
mod doctor;
mod drain;
mod field_test;
mod fleet;
mod floods;
mod forged;
mod frr;
mod gen_pcap;
mod hangup;
mod hijack;
mod icmp;
mod interface;
mod ipv6_vlan;
mod kernel_settings;
mod links;
mod linux;
mod live;
mod logging;
mod lossless;
mod management;
mod metrics;
mod namespaces;
mod operator;
mod own_user;
mod packet_sockets;
mod page;
mod pfc_live;
mod pktgen;
mod polling;
mod punt_floods;
mod restart;
mod restart_counters;
mod sandbox;
mod service;
mod several_workers;
mod softroce_captures;
mod top;
mod upgrade;
