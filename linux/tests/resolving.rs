//! Requests to the kernel for neighbours, and what the switch had no capacity for: each is tried again, and none is repeated without need.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::common::Book;
use npcc_linux::fib::{Fib, Member, Refused};
use npcc_linux::table::model::Model;
use npcc_linux::wanted::differ::{Differ, Done};
use npcc_linux::wanted::ports::{Place, Ports};
use npcc_linux::wanted::resolving::Ask;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::link::Link;
use npcc_linux::wire::neighbor::Neighbor;
use npcc_linux::wire::route::Hop;
use npcc_pipeline::route::nexthop::{Kind, NextHopGroupId};
use npcc_pipeline::route::prefix::Prefix;
use npcc_pipeline::units::{Mac, PortId};

/// `NUD_REACHABLE` and `NUD_FAILED`.
const REACHABLE: u16 = 0x02;
const FAILED: u16 = 0x20;

/// Switch that may have no capacity for changes of groups.
#[derive(Default)]
struct Tight {
    book: Book,
    full: bool,
}

impl Fib for Tight {
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused> {
        self.book.make_group(members)
    }

    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused> {
        if self.full {
            return Err(Refused("no room".to_owned()));
        }
        self.book.change_group(group, members)
    }

    fn remove_group(&mut self, group: NextHopGroupId) {
        self.book.remove_group(group);
    }

    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused> {
        self.book.set_route(prefix, group)
    }

    fn remove_route(&mut self, prefix: Prefix) {
        self.book.remove_route(prefix);
    }

    fn commit(&mut self) {
        self.book.commit();
    }
}

/// Port `p1`, and link 2, which is no port.
struct Bench {
    model: Model,
    differ: Differ,
    fib: Tight,
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Bench {
    fn new() -> Bench {
        let place = Place {
            port: PortId(1),
            vlan: 0,
            mac: Mac([2, 0, 0, 0, 1, 1]),
        };
        let ports = Ports::new(BTreeMap::from([("p1".to_owned(), place)]));
        let mut bench = Bench {
            model: Model::default(),
            differ: Differ::new(ports),
            fib: Tight::default(),
        };
        bench.link(1, true);
        bench.link(2, true);
        bench
    }

    fn link(&mut self, index: u32, carrier: bool) {
        self.model.apply(Event::Link(Link {
            index,
            name: format!("p{index}"),
            up: true,
            carrier,
            mac: None,
            mtu: 1500,
            macvlan_over: None,
        }));
    }

    /// Adds a route on a link by gateways, or to the hosts there.
    fn route(&mut self, prefix: &str, link: u32, gateways: &[&str]) {
        let hop = |gateway| Hop {
            link,
            gateway,
            weight: 1,
        };
        let hops = if gateways.is_empty() {
            vec![hop(None)]
        } else {
            let each = gateways.iter();
            each.map(|gateway| hop(Some(address(gateway)))).collect()
        };
        self.model.apply(crate::common::route(prefix, hops));
    }

    fn neighbor(&mut self, link: u32, host: &str, state: u16, managed: bool) {
        self.model.apply(Event::Neighbor(Neighbor {
            link,
            address: address(host),
            mac: (state == REACHABLE).then_some(Mac([2, 0, 0, 0, 1, 3])),
            state,
            managed,
        }));
    }

    fn sync(&mut self) -> Done {
        let changes = self.model.take_changes();
        self.differ.sync(&self.model, changes, &mut self.fib)
    }

    fn asks(&mut self) -> Vec<Ask> {
        self.sync().asks
    }

    fn retry(&mut self) -> Done {
        let mut changes = self.model.take_changes();
        self.differ.retry(&mut changes);
        self.differ.sync(&self.model, changes, &mut self.fib)
    }
}

#[test]
fn a_gateway_is_requested_once_until_it_is_tried_again() {
    let mut bench = Bench::new();
    let [first, second] = ["10.0.1.3", "10.0.1.4"].map(|host| Ask::Keep(1, address(host)));
    bench.route("10.9.0.0/16", 1, &["10.0.1.3"]);
    assert_eq!(bench.asks(), vec![first]);
    bench.route("10.8.0.0/16", 1, &["10.0.1.3", "10.0.1.4"]);
    assert_eq!(bench.asks(), vec![second], "the first is under way");
    assert_eq!(bench.retry().asks, vec![first, second]);
    bench.neighbor(1, "10.0.1.3", REACHABLE, true);
    assert_eq!(bench.asks(), vec![], "the kernel keeps it");
    assert_eq!(bench.retry().asks, vec![second]);
}

/// A request over a link without carrier would only fail; it is made when the carrier comes.
#[test]
fn a_gateway_behind_a_link_without_carrier_is_requested_when_the_carrier_comes() {
    let mut bench = Bench::new();
    bench.link(1, false);
    bench.route("10.9.0.0/16", 1, &["10.0.1.3"]);
    assert_eq!(bench.asks(), vec![]);
    bench.link(1, true);
    assert_eq!(bench.asks(), vec![Ask::Keep(1, address("10.0.1.3"))]);
}

#[test]
fn a_host_that_failed_is_released_and_a_gateway_is_kept() {
    let mut bench = Bench::new();
    bench.route("10.0.1.0/24", 1, &[]);
    bench.route("10.9.0.0/16", 1, &["10.0.1.3"]);
    for host in ["10.0.1.3", "10.0.1.4"] {
        bench.neighbor(1, host, REACHABLE, true);
    }
    assert_eq!(bench.asks(), vec![]);
    for host in ["10.0.1.3", "10.0.1.4"] {
        bench.neighbor(1, host, FAILED, true);
    }
    assert_eq!(bench.asks(), vec![Ask::Forget(1, address("10.0.1.4"))]);
}

/// The kernel keeps the state of interfaces that the switch does not forward to.
#[test]
fn neighbours_of_a_link_that_is_no_port_have_no_route_and_no_request() {
    let mut bench = Bench::new();
    bench.route("10.0.2.0/24", 2, &[]);
    bench.route("10.9.0.0/16", 2, &["10.0.2.4"]);
    bench.neighbor(2, "10.0.2.3", REACHABLE, false);
    assert_eq!(bench.asks(), vec![]);
    assert!(!bench.fib.book.has("10.0.2.3/32"));
    assert_eq!(bench.differ.figures().left_out, 2);
}

#[test]
fn a_group_that_the_switch_could_not_change_is_changed_with_the_next_change() {
    let mut bench = Bench::new();
    bench.route("10.9.0.0/16", 1, &["10.0.1.3"]);
    bench.sync();
    let kind = |bench: &Bench| {
        bench.fib.book.members("10.9.0.0/16").unwrap()[0]
            .adjacency
            .kind
    };
    bench.fib.full = true;
    bench.neighbor(1, "10.0.1.3", REACHABLE, true);
    assert_eq!(bench.sync().refused, Some(Refused("no room".to_owned())));
    assert_eq!(kind(&bench), Kind::Unresolved);
    assert_eq!(bench.differ.wrong(&bench.model).len(), 1);
    bench.fib.full = false;
    assert_eq!(bench.sync().refused, None);
    assert_eq!(kind(&bench), Kind::Forward);
    assert_eq!(bench.differ.wrong(&bench.model), vec![]);
}

#[test]
fn routes_that_the_switch_refused_are_tried_again() {
    let mut bench = Bench::new();
    bench.fib.book.room = Some(1);
    bench.route("10.8.0.0/16", 1, &["10.0.1.3"]);
    bench.route("10.9.0.0/16", 1, &["10.0.1.3"]);
    assert!(bench.sync().refused.is_some());
    assert_eq!(bench.differ.figures().refused, 1);
    bench.fib.book.room = None;
    bench.retry();
    assert_eq!(bench.differ.figures().refused, 0);
    assert!(bench.fib.book.has("10.8.0.0/16") && bench.fib.book.has("10.9.0.0/16"));
}
