//! Facts that the next process has to know: the kernel objects that the file wanted, so that those it wants no more are removed, whether
//! the switch was being drained, the pause storms in progress, and where the kernel's IPv6 is off.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use npcc_heap::records::{self, Ring};
use npcc_linux::netlink::wants::{StaticNeighbor, StaticRoute, Wanted};
use npcc_pipeline::units::Mac;
use serde::{Deserialize, Serialize};

use super::memory;
use super::storms::Storm;
use npcc_engine::store::Store;

/// Largest number of words of the facts; memory that is not written to costs nothing.
const LONGEST: usize = 1 << 20;
const WHAT: (&str, &str) = ("facts", "1 word: octets; JSON of them, 8 a word");

/// Facts left for the next process. An absent fact is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Kernel objects that were wanted, by their keys.
    pub wanted: Option<Named>,
    /// Time since which the switch is being drained, in seconds since 1970; absent when it is not.
    pub draining: Option<u64>,
    /// Pause storms that were in progress.
    pub storms: Vec<Storm>,
    /// Interfaces under ports on which the switch disabled the kernel's IPv6, and has not enabled it again.
    pub ipv6_off: Vec<String>,
}

impl Facts {
    /// Returns the time at `now` for which the switch's traffic has been drained; `None` if it is not. If the wall clock was set back, the time
    /// is unknown and 0.
    #[must_use]
    pub fn drained_for(&self, now: SystemTime) -> Option<Duration> {
        let begun = Duration::from_secs(self.draining?);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(now.saturating_sub(begun))
    }
}

/// Keys of addresses, neighbours and routes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Addresses by the names of their links.
    addresses: BTreeMap<String, Vec<String>>,
    /// Neighbours by their links and addresses.
    neighbors: Vec<(String, String)>,
    /// Routes by their prefixes and metrics.
    routes: Vec<(String, u32)>,
}

impl Named {
    /// Returns the keys of all that is wanted.
    #[must_use]
    pub fn of(wanted: &Wanted) -> Named {
        let texts = |nets: &Vec<_>| nets.iter().map(ToString::to_string).collect();
        let addresses = wanted.addresses.iter();
        let neighbors = wanted.neighbors.iter();
        let routes = wanted.routes.iter();
        Named {
            addresses: addresses
                .map(|(link, nets)| (link.clone(), texts(nets)))
                .collect(),
            neighbors: neighbors
                .map(|one| (one.link.clone(), one.address.to_string()))
                .collect(),
            routes: routes
                .map(|route| (route.prefix.to_string(), route.metric))
                .collect(),
        }
    }

    /// Converts the keys into the form that the kernel's side removes; without MAC addresses and next hops it cannot be added.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let nets =
            |texts: &Vec<String>| texts.iter().filter_map(|text| text.parse().ok()).collect();
        let addresses = self.addresses.iter();
        let neighbor = |(link, address): &(String, String)| {
            Some(StaticNeighbor {
                link: link.clone(),
                address: address.parse().ok()?,
                mac: Mac([0; 6]),
            })
        };
        let route = |(prefix, metric): &(String, u32)| {
            Some(StaticRoute {
                prefix: prefix.parse().ok()?,
                via: vec![],
                metric: *metric,
            })
        };
        Wanted {
            addresses: addresses
                .map(|(link, texts)| (link.clone(), nets(texts)))
                .collect(),
            neighbors: self.neighbors.iter().filter_map(neighbor).collect(),
            routes: self.routes.iter().filter_map(route).collect(),
        }
    }
}

/// Current facts, and the ring in which they are left.
#[derive(Debug, Default)]
pub(super) struct FactsKept {
    /// Ring of records; `None` where nothing outlives the process.
    ring: Option<Ring>,
    pub(super) now: Facts,
}

impl FactsKept {
    /// Opens the ring and reads the facts that the process before left.
    ///
    /// # Errors
    /// The ring cannot be made.
    pub(super) fn open(store: &Store, note: &mut dyn FnMut(String)) -> io::Result<FactsKept> {
        let ring = memory::ring(store, WHAT, (2, LONGEST), note)?;
        let now = ring.newest().and_then(|record| read(&record.words));
        Ok(FactsKept {
            ring: Some(ring),
            now: now.unwrap_or_default(),
        })
    }

    /// Leaves `facts` for the next process, if they differ from the current ones.
    ///
    /// # Errors
    /// The facts are too long.
    pub(super) fn leave(&mut self, facts: Facts) -> io::Result<()> {
        if facts == self.now {
            return Ok(());
        }
        let words = words(&facts)?;
        self.now = facts;
        let Some(ring) = &self.ring else {
            return Ok(());
        };
        if words.len() > ring.longest() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        ring.push(words);
        Ok(())
    }
}

fn words(facts: &Facts) -> io::Result<Vec<u64>> {
    let text = serde_json::to_vec(facts)?;
    let length = [text.len() as u64].into_iter();
    Ok(length.chain(records::words_of(&text)).collect())
}

fn read(list: &[u64]) -> Option<Facts> {
    let (length, words) = list.split_first()?;
    let text = records::octets_of(words);
    serde_json::from_slice(text.get(..usize::try_from(*length).ok()?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards `show` against a time in saved memory that no clock has: it panicked.
    #[test]
    fn a_drain_that_began_at_any_time_is_going_on() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let drained = |draining| {
            let facts = Facts {
                draining,
                ..Facts::default()
            };
            facts.drained_for(now).map(|since| since.as_secs())
        };
        assert_eq!(drained(None), None);
        assert_eq!(drained(Some(900)), Some(100));
        assert_eq!(drained(Some(1_001)), Some(0), "the clock was set back");
        assert_eq!(drained(Some(u64::MAX)), Some(0));
    }

    #[test]
    fn facts_that_did_not_change_are_not_written_again() {
        let mut facts = FactsKept {
            ring: Some(Ring::on_heap(2, 64)),
            now: Facts::default(),
        };
        for (draining, written) in [(None, 0), (Some(7), 1), (Some(7), 1), (None, 2)] {
            let now = Facts {
                draining,
                ..Facts::default()
            };
            facts.leave(now).unwrap();
            assert_eq!(facts.ring.as_ref().unwrap().written(), written);
        }
    }

    #[test]
    fn what_was_wanted_comes_back_as_far_as_it_is_to_be_taken_away() {
        let text = "version: 1
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24, '2001:db8:1::1/64'] }
  - { name: wan0, device: net_null1, addresses: [10.0.2.1/24] }
routes: [ { prefix: 10.0.3.0/24, via: 10.0.2.9 } ]
neighbors: [ { address: 10.0.2.9, port: wan0, mac: '02:00:00:00:07:07' } ]
linux: { integrate: true }
";
        let config = npcc_config::parse("t.yaml", text).unwrap().config;
        let wanted = crate::wiring::hosts::wanted(&config);
        let facts = Facts {
            wanted: Some(Named::of(&wanted)),
            draining: Some(7),
            storms: vec![Storm {
                port: "wan0".to_owned(),
                priority: 3,
                since_ms: 9,
            }],
            ipv6_off: vec!["veth-a".to_owned()],
        };
        let back = read(&words(&facts).unwrap()).unwrap();
        assert_eq!(back, facts);
        let taken = back.wanted.unwrap().wanted();
        assert_eq!(taken.addresses, wanted.addresses);
        let keys = |of: &Wanted| (of.routes[0].prefix, of.neighbors[0].address);
        assert_eq!(keys(&taken), keys(&wanted));
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[9, 7]), None);
    }
}
