//! Neighbours whose MAC address is not that of another host: no frame is sent there.

use std::collections::BTreeMap;

use crate::common::Book;
use npcc_linux::table::model::Model;
use npcc_linux::wanted::differ::{Differ, Done};
use npcc_linux::wanted::ports::{Place, Ports};
use npcc_linux::wire::event::Event;
use npcc_linux::wire::link::Link;
use npcc_linux::wire::neighbor::Neighbor;
use npcc_linux::wire::route::Hop;
use npcc_pipeline::route::nexthop::Kind;
use npcc_pipeline::units::{Mac, PortId, RefusedMac};

const HOST: Mac = Mac([2, 0, 0, 0, 1, 3]);

/// Ports `p1` and `p2`, 10.0.1.0/24 attached to the first, 10.9.0.0/16 by 10.0.1.3, and 10.8.0.0/16 by both 10.0.1.3 and 10.0.2.3.
struct Bench {
    model: Model,
    differ: Differ,
    book: Book,
}

impl Bench {
    fn new() -> Bench {
        let place = |n: u8| Place {
            port: PortId(n),
            vlan: 0,
            mac: Mac([2, 0, 0, 0, n, 1]),
        };
        let by_name = [1, 2].map(|n| (format!("p{n}"), place(n)));
        let mut model = Model::default();
        for index in [1, 2] {
            let link = Link {
                index,
                name: format!("p{index}"),
                up: true,
                carrier: true,
                mac: None,
                mtu: 1500,
                macvlan_over: None,
            };
            model.apply(Event::Link(link));
        }
        let hop = |link, gateway: Option<&str>| Hop {
            link,
            gateway: gateway.map(|text| text.parse().unwrap()),
            weight: 1,
        };
        let (first, second) = (hop(1, Some("10.0.1.3")), hop(2, Some("10.0.2.3")));
        for (prefix, hops) in [
            ("10.0.1.0/24", vec![hop(1, None)]),
            ("10.9.0.0/16", vec![first]),
            ("10.8.0.0/16", vec![first, second]),
        ] {
            model.apply(crate::common::route(prefix, hops));
        }
        Bench {
            model,
            differ: Differ::new(Ports::new(BTreeMap::from(by_name))),
            book: Book::default(),
        }
    }

    /// Has a neighbour with a MAC address, as the kernel announces it.
    fn neighbor(&mut self, link: u32, mac: Mac) -> Done {
        self.model.apply(Event::Neighbor(Neighbor {
            link,
            address: format!("10.0.{link}.3").parse().unwrap(),
            mac: Some(mac),
            state: 2,
            managed: true,
        }));
        let changes = self.model.take_changes();
        self.differ.sync(&self.model, changes, &mut self.book)
    }

    /// Returns where a prefix leads: each member's kind and MAC address.
    fn way(&self, prefix: &str) -> Option<Vec<(Kind, Mac)>> {
        let members = self.book.members(prefix)?;
        let each = members.iter();
        Some(
            each.map(|one| (one.adjacency.kind, one.adjacency.dst))
                .collect(),
        )
    }
}

/// Earlier defect: a host that answered ARP with such an address turned the data to it into broadcasts, or into frames for the switch.
#[test]
fn no_frame_is_sent_to_a_neighbour_whose_mac_address_is_no_other_hosts() {
    let unresolved = || Some(vec![(Kind::Unresolved, Mac::default())]);
    let forward = |mac| Some(vec![(Kind::Forward, mac)]);
    for (mac, refused) in [
        (Mac([1, 0, 0x5e, 0, 0, 9]), RefusedMac::Group),
        (Mac([0xff; 6]), RefusedMac::Broadcast),
        (Mac([0; 6]), RefusedMac::Zero),
        (Mac([2, 0, 0, 0, 1, 1]), RefusedMac::Own),
        // That of another port of the switch.
        (Mac([2, 0, 0, 0, 2, 1]), RefusedMac::Own),
    ] {
        let mut bench = Bench::new();
        let other = Mac([2, 0, 0, 0, 2, 3]);
        bench.neighbor(2, other);
        let done = bench.neighbor(1, mac);
        assert_eq!(done.refused_neighbors, 1, "{mac}");
        let known = bench.model.neighbors().iter().find(|one| one.link == 1);
        let why = bench.differ.ports().refused_mac(known.unwrap());
        assert_eq!(why, Some(refused), "{mac}");
        assert_eq!(bench.way("10.9.0.0/16"), unresolved(), "{mac}");
        assert_eq!(bench.way("10.0.1.3/32"), None, "{mac}");
        // A way with a host takes all of the traffic.
        assert_eq!(bench.way("10.8.0.0/16"), forward(other), "{mac}");
        assert_eq!(bench.differ.wrong(&bench.model), vec![], "{mac}");

        // The same answer again is the same refusal.
        assert_eq!(bench.neighbor(1, mac).refused_neighbors, 0, "{mac}");
        bench.neighbor(1, HOST);
        assert_eq!(bench.way("10.9.0.0/16"), forward(HOST), "{mac}");
        assert_eq!(bench.way("10.0.1.3/32"), forward(HOST), "{mac}");
        assert_eq!(bench.neighbor(1, mac).refused_neighbors, 1, "{mac}");
        assert_eq!(bench.way("10.9.0.0/16"), unresolved(), "{mac}");
        assert_eq!(bench.way("10.0.1.3/32"), None, "{mac}");
    }
}
