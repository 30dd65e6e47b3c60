//! Fuzz target of what the kernel sends by netlink: any datagram gives events or none, any order of events leaves a model whose
//! forwarding state is the one computed anew from it, and an answer of ethtool's family gives a number or none. Most messages have a
//! header and a kind that are read.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use npcc_linux::table::model::Model;
use npcc_linux::wanted::differ::Differ;
use npcc_linux::wanted::ports::{Place, Ports};
use npcc_linux::wire::event::event;
use npcc_linux::wire::message::messages;
use npcc_linux::wire::request::Dump;
use npcc_linux::wire::{address, ethtool, link, neighbor, nexthop, route, rule};
use npcc_pipeline::units::{Mac, PortId};

#[path = "../../../linux/tests/common/mod.rs"]
mod common;

/// Kinds of messages that are read.
const KINDS: [u16; 12] = [
    link::NEW,
    link::GONE,
    address::NEW,
    address::GONE,
    neighbor::NEW,
    neighbor::GONE,
    nexthop::NEW,
    nexthop::GONE,
    route::NEW,
    route::GONE,
    rule::NEW,
    rule::GONE,
];

/// Ports of the switch: links of these names.
const PORTS: [&str; 2] = ["a", "b"];

fuzz_target!(|bytes: &[u8]| {
    let places = PORTS.iter().zip(0..).map(|(name, port)| {
        let place = Place { port: PortId(port), vlan: 0, mac: Mac([2, 0, 0, 0, 1, port]) };
        ((*name).to_owned(), place)
    });
    let (mut model, mut fib) = (Model::default(), common::Book::default());
    let mut differ = Differ::new(Ports::new(places.collect::<BTreeMap<_, _>>()));
    let mut rest = bytes;
    while let [how, len, tail @ ..] = rest {
        let (some, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let datagram = if how & 0x80 == 0 { framed(*how, some) } else { some.to_vec() };
        let all: Vec<_> = messages(&datagram).collect();
        assert!(all.len() <= datagram.len() / 16);
        for message in &all {
            let _ = (message.errno(), ethtool::family_of(message.body));
            let Ok(event) = event(message) else { continue };
            match how >> 5 & 3 {
                0 | 1 => model.apply(event),
                2 => model.apply_dumped(event),
                _ => model.apply_late(event),
            };
        }
        if how & 0x1f == 0x1f {
            model.begin_sweep();
            for what in [Dump::Links, Dump::Addresses, Dump::NextHops, Dump::Neighbors] {
                model.sweep(what);
            }
        }
        if how & 1 == 0 {
            let changes = model.take_changes();
            differ.sync(&model, changes, &mut fib);
            assert_eq!(differ.wrong(&model), []);
        }
    }
});

/// Returns a message of a kind that is read, with this body.
fn framed(how: u8, body: &[u8]) -> Vec<u8> {
    let kind = KINDS[usize::from(how >> 1 & 0x0f) % KINDS.len()];
    let len = 16 + u32::try_from(body.len()).unwrap();
    let flags = if how & 1 == 0 { 0u16 } else { 0x100 };
    [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8], body].concat()
}
