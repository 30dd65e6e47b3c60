//! Checks that a packet's source lies behind the port it came by: packets with another host's address from another side
//! of the switch teach nothing.
//!
//! The reverse path decides: the ports that the routes to the source lead out of, any of the equal ones. Answers are
//! kept by source in a table of fixed size, until the routes change.

use std::fmt::Debug;
use std::net::IpAddr;

use npcc_pipeline::units::{MAX_PORTS, PortId};

use crate::key::{Bits, FlowKey, KeyHasher, low32};

/// Number of sources remembered; each has one place.
const SOURCES: usize = 8_192;
/// Flag in [`Known::stamp`] that the address is one of IPv6.
const V6: u64 = 1;

/// Location of hosts, by the switch's routes.
pub trait Routes: Debug + Send {
    /// Refreshes to the newest routes, in every turn of the control core. Returns a number, below 2^62, that changes whenever routes have changed.
    fn refresh(&mut self) -> u64;

    /// Ports, as a set, behind which the next hops toward an address are, including ports that are down. 0 without a route.
    fn ports_toward(&self, host: IpAddr) -> u32;
}

/// Port set by ingress port: packets that came by the port are believed if their source is behind one of the set.
pub type Sides = [u32; MAX_PORTS];

/// Sides that refuse no packet for the port it came by.
pub const ANYWHERE: Sides = [u32::MAX; MAX_PORTS];

/// Location of a source.
#[derive(Debug, Clone, Copy)]
struct Known {
    source: Bits,
    /// Version of the routes that gave the answer, plus one, and the family; 0 if nothing is known.
    stamp: u64,
    ports: u32,
}

/// Check that a packet's source lies behind the port it came in by: see the module's text.
#[derive(Debug)]
pub struct SourceCheck {
    routes: Option<Box<dyn Routes>>,
    sides: Sides,
    known: Box<[Known]>,
    version: u64,
    hasher: KeyHasher,
}

impl SourceCheck {
    /// Makes a check that knows no routes yet; `seed` keys the hash of its cache.
    pub fn new(sides: Sides, seed: u64) -> SourceCheck {
        let nobody = Known {
            source: [0; 2],
            stamp: 0,
            ports: 0,
        };
        SourceCheck {
            routes: None,
            sides,
            known: vec![nobody; SOURCES].into_boxed_slice(),
            version: 0,
            hasher: KeyHasher::new(seed),
        }
    }

    /// Sets the routes to look up from now on.
    pub fn know_routes(&mut self, routes: Box<dyn Routes>) {
        self.routes = Some(routes);
        self.version = 0;
    }

    /// Replaces the sides of the ports.
    pub const fn reconfigure(&mut self, sides: Sides) {
        self.sides = sides;
    }

    /// Refreshes to the newest routes; called in every turn of the control core.
    pub fn refresh(&mut self) {
        if let Some(routes) = &mut self.routes {
            self.version = routes.refresh() + 1;
        }
    }

    /// Returns true if the source of a packet that came by this port may lie behind it. Without routes, any source may.
    #[inline]
    pub fn admits(&mut self, key: &FlowKey, ingress: PortId) -> bool {
        let side = self.sides.get(ingress.index()).copied().unwrap_or(0);
        side == u32::MAX || self.ports_of(key).is_none_or(|ports| ports & side != 0)
    }

    /// Ports behind which the source of a key lies; `None` without routes.
    pub fn ports_of(&mut self, key: &FlowKey) -> Option<u32> {
        let routes = self.routes.as_ref()?;
        let stamp = self.version << 1 | if key.is_ipv6() { V6 } else { 0 };
        let place = low32(self.hasher.hash(&key.src)) as usize % SOURCES;
        let known = self.known.get_mut(place)?;
        if known.source != key.src || known.stamp != stamp {
            *known = Known {
                source: key.src,
                stamp,
                ports: routes.ports_toward(key.src()),
            };
        }
        Some(known.ports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Qpn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// Routes to 10.0.1.0/24 behind a set of ports that changes, and to everything else behind port 1.
    #[derive(Debug, Default)]
    struct Table {
        version: AtomicU64,
        near: AtomicU32,
        lookups: AtomicU64,
    }

    #[derive(Debug)]
    struct Shared(Arc<Table>);

    impl Routes for Shared {
        fn refresh(&mut self) -> u64 {
            self.0.version.load(Ordering::Relaxed)
        }

        fn ports_toward(&self, host: IpAddr) -> u32 {
            self.0.lookups.fetch_add(1, Ordering::Relaxed);
            match host {
                IpAddr::V4(host) if host.octets().starts_with(&[10, 0, 1]) => {
                    self.0.near.load(Ordering::Relaxed)
                }
                _ => 2,
            }
        }
    }

    const PORTS: Sides = {
        let mut sides = [0; MAX_PORTS];
        let mut port = 0;
        while port < MAX_PORTS {
            sides[port] = 1 << port;
            port += 1;
        }
        sides
    };

    fn from(source: [u8; 4]) -> FlowKey {
        FlowKey::new(source.into(), IpAddr::from([10, 9, 9, 9]), Qpn::new(2))
    }

    fn check(sides: Sides) -> (SourceCheck, Arc<Table>) {
        let table = Arc::new(Table::default());
        table.near.store(1, Ordering::Relaxed);
        let mut check = SourceCheck::new(sides, 3);
        check.know_routes(Box::new(Shared(Arc::clone(&table))));
        check.refresh();
        (check, table)
    }

    #[test]
    fn a_source_is_believed_by_any_of_the_equal_paths_to_it_and_by_no_other() {
        let (mut check, table) = check(PORTS);
        let near = from([10, 0, 1, 3]);
        assert!(check.admits(&near, PortId(0)) && !check.admits(&near, PortId(1)));
        table.near.store(0b101, Ordering::Relaxed);
        table.version.store(1, Ordering::Relaxed);
        check.refresh();
        let ports = (0..4).map(PortId).filter(|port| check.admits(&near, *port));
        assert_eq!(ports.collect::<Vec<_>>(), [PortId(0), PortId(2)]);
    }

    #[test]
    fn routes_are_looked_up_once_per_source_until_they_change() {
        let (mut check, table) = check(PORTS);
        let lookups = || table.lookups.load(Ordering::Relaxed);
        for _ in 0..100 {
            check.admits(&from([10, 0, 1, 3]), PortId(0));
        }
        assert_eq!(lookups(), 1);
        table.near.store(2, Ordering::Relaxed);
        assert!(check.admits(&from([10, 0, 1, 3]), PortId(0)), "as it was");
        table.version.store(1, Ordering::Relaxed);
        check.refresh();
        assert!(!check.admits(&from([10, 0, 1, 3]), PortId(0)));
        assert_eq!(lookups(), 2);
    }

    #[test]
    fn an_ipv6_address_is_not_that_of_ipv4_it_looks_like() {
        let (mut check, _) = check(PORTS);
        assert!(check.admits(&from([10, 0, 1, 3]), PortId(0)));
        let mapped = IpAddr::from(std::net::Ipv4Addr::new(10, 0, 1, 3).to_ipv6_mapped());
        let key = FlowKey::new(mapped, mapped, Qpn::new(2));
        assert!(!check.admits(&key, PortId(0)) && check.admits(&key, PortId(1)));
    }

    #[test]
    fn nobody_is_refused_where_nothing_is_asked() {
        let (mut off, table) = check(ANYWHERE);
        assert!(off.admits(&from([10, 0, 1, 3]), PortId(1)));
        assert_eq!(table.lookups.load(Ordering::Relaxed), 0);
        let mut blind = SourceCheck::new(PORTS, 3);
        blind.refresh();
        assert!(blind.admits(&from([10, 0, 1, 3]), PortId(1)), "no routes");
    }
}
