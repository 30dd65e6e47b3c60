//! A pair of boxes between hosts.

use std::collections::BTreeMap;

use npcc_testkit::wait;

use super::feeds::Feeds;
use super::hosts::{Hosts, Paths, Seen, numbers};
use crate::common::Lab;
use crate::common::forge::{config, links};
use crate::common::net::Net;
use crate::common::switch::Switch;

/// Bytes of a flow that earn a CNP, `npcc.cnp.earned` of the boxes: few, so that a short test signals all flows.
const EARNED: u64 = 1_000;

/// A pair of boxes between hosts.
pub(crate) struct Pair {
    feeds: Option<Feeds>,
    pub(crate) boxes: [Switch; 2],
    pub(crate) net: Net,
}

impl Pair {
    pub(crate) fn new() -> Pair {
        Pair::with_earned(EARNED)
    }

    /// Starts boxes that send a flow at most one CNP for so many of its bytes.
    pub(crate) fn with_earned(bytes: u64) -> Pair {
        let net = links(&["dc1", "wan1", "dc2", "wan2"]);
        let start = |near, far| Switch::start(lab(&net, near, far, bytes));
        let boxes = [start("dc1", "wan1"), start("dc2", "wan2")];
        Pair {
            feeds: None,
            boxes,
            net,
        }
    }

    /// Starts servers and feeds, and waits until each box has the other's ends.
    pub(crate) fn connect(&mut self) {
        self.feeds = Some(Feeds::start(&self.boxes));
        self.wait_until_equal();
    }

    /// Starts servers, and feeds which lose this percentage of the messages about ends; waits until each box has the other's ends.
    pub(crate) fn connect_and_lose(&mut self, percent: u64) {
        self.connect();
        let feeds = self.feeds.as_mut().unwrap();
        feeds.lose(&self.boxes, percent);
        self.wait_until_equal();
    }

    /// Servers and feeds that were started.
    pub(crate) fn feeds(&self) -> &Feeds {
        self.feeds.as_ref().unwrap()
    }

    /// Waits until the fleet's table says that each feed has the other's ends, from now on.
    pub(crate) fn wait_until_equal(&self) {
        let fleet = self.boxes[0].path("fleet");
        let before = std::fs::metadata(&fleet).unwrap().len();
        let before = usize::try_from(before).unwrap();
        let awaited = || std::fs::read_to_string(self.boxes[0].path("feeds")).unwrap();
        wait::value(wait::LONG, awaited, || {
            let text = std::fs::read_to_string(&fleet).unwrap();
            let equal = |name: &str| text[before..].contains(&format!("{name}:equal"));
            (equal("edge-1") && equal("edge-2")).then_some(())
        });
    }

    /// Times since when the first box's routes, and its pairs, are ready.
    pub(crate) fn ready(&self) -> [Option<u64>; 2] {
        let peers = self.boxes[0].show("peers");
        ["routes_ready", "pairs_ready"].map(|what| peers[what].as_u64())
    }

    /// Shares in % of paired data in all tables of the fleet so far.
    pub(crate) fn paired_shares(&self) -> Vec<f64> {
        let text = std::fs::read_to_string(self.boxes[0].path("fleet")).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let shares = words.windows(2).filter(|pair| pair[1] == "%");
        shares.map(|pair| pair[0].parse().unwrap()).collect()
    }

    /// Has the hosts send by these paths for a time in s; returns what they saw of each box.
    pub(crate) fn play(&self, connections: u32, paths: Paths, seconds: f64) -> [Seen; 2] {
        let mut hosts = Hosts::start(&self.net, connections, &[(paths, seconds)]);
        hosts.phase(paths)
    }

    /// Number of connections whose sender is known by the box that its data pass; a wrong sender fails.
    pub(crate) fn known(&self, connections: u32, paths: Paths) -> usize {
        let known = |at: usize| {
            let senders = (0..connections).filter(|n| paths.data_of(*n) == at);
            let senders: BTreeMap<u64, u64> = senders
                .map(numbers)
                .map(|(sender, receiver)| (receiver.into(), sender.into()))
                .collect();
            let flows = self.boxes[at].show("flows --top 10000");
            let known = flows.as_array().unwrap().iter().filter(|flow| {
                let sender = flow["dest_qp"].as_u64().and_then(|dest| senders.get(&dest));
                let is_known = flow["evidence"] != "none" && sender.is_some();
                assert!(
                    !is_known || flow["sender_qp"].as_u64() == sender.copied(),
                    "{flow}"
                );
                is_known
            });
            known.count()
        };
        known(0) + known(1)
    }
}

/// Configuration of a box with these ends of links.
fn lab(net: &Net, near: &str, far: &str, earned: u64) -> Lab {
    let npcc =
        "{ evidence: foreign, tick: 1ms, recovery: 4ms, shallow: 20KB, deep: 100KB, gate: off,
         hosts: { answering: [10.0.1.0/24] }, cnp: { earned: EARNED } }"
            .replace("EARNED", &format!("{earned}B"));
    let cores = "cores: { control: 0, workers: [1], idle: adaptive }\n";
    Lab::with(&(config(net, [near, far], &npcc) + cores))
}
