//! Links of the switch in Linux: what is said of them to the switch, and what is set on them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use npcc_pipeline::units::{Mac, PortId};

use super::Service;
use crate::fib::Fib;
use crate::netlink::handle::Notice;
use crate::netlink::wants::RefusedByLinux;
use crate::wire::request::{LinkSettings, set_link};

/// Local addresses on the VLANs of a port, and MAC addresses of macvlans there.
pub(super) type Own = (Vec<(u16, Vec<IpAddr>)>, Vec<(u16, Mac)>);

impl<F: Fib, N: FnMut(Notice)> Service<F, N> {
    pub(super) fn links_changed(&mut self) {
        let risen = self.mirror.model_mut().take_risen();
        let ours = risen
            .iter()
            .filter(|index| self.mirror.differ().ports().own(**index).is_some());
        let ours: Vec<u32> = ours.copied().collect();
        for index in &ours {
            for refused in self.wants.put_link(*index, self.mirror.requests()) {
                (self.notice)(Notice::Refused(refused));
            }
        }
        if !ours.is_empty() {
            for refused in self.wants.put_routes(self.mirror.requests()) {
                (self.notice)(Notice::Refused(refused));
            }
        }
        self.set_links_back();
        let links = self.mirror.model().links().iter();
        let ports = self.mirror.differ().ports();
        let untagged = links.filter_map(|link| {
            let place = ports.own(link.index).filter(|place| place.vlan == 0)?;
            Some((place.port, link.up))
        });
        let now: BTreeMap<PortId, bool> = untagged.collect();
        for (port, up) in &now {
            if self.admin.get(port) != Some(up) {
                (self.notice)(Notice::Admin(*port, *up));
            }
        }
        self.admin = now;
        self.tell_gone();
        self.tell_addresses();
    }

    /// Gives notice of interfaces that were deleted or moved away; one that was renamed is still there.
    fn tell_gone(&mut self) {
        let (links, ports) = (self.mirror.model().links(), self.mirror.differ().ports());
        let (notice, places) = (&mut self.notice, &mut self.places);
        places.retain(|index, (port, vlan)| {
            let stays = links.get(*index).is_some();
            if !stays {
                notice(Notice::Gone(*port, *vlan));
            }
            stays
        });
        let placed = links
            .iter()
            .filter_map(|link| Some((link.index, ports.own(link.index)?)));
        places.extend(placed.map(|(index, place)| (index, (place.port, place.vlan))));
    }

    pub(super) fn set_links_back(&mut self) {
        let (requests, state) = self.mirror.parts();
        let links = state.model.links();
        let (done, refused) = self.wants.set_links_back(Instant::now(), links, requests);
        for (name, words) in done {
            (self.notice)(Notice::SetBack(name, words));
        }
        for refused in refused {
            (self.notice)(Notice::Refused(refused));
        }
    }

    pub(super) fn tell_addresses(&mut self) {
        let (links, ports) = (self.mirror.model().links(), self.mirror.differ().ports());
        let others: Vec<IpAddr> = {
            let elsewhere = links
                .addresses()
                .filter(|one| ports.place(one.link).is_none());
            elsewhere
                .map(|one| one.address)
                .filter(is_ours_anywhere)
                .collect()
        };
        let of = |link: u32| links.addresses().filter(move |one| one.link == link);
        let mut now: BTreeMap<PortId, Own> = BTreeMap::new();
        for link in links.iter() {
            let Some(place) = ports.own(link.index) else {
                continue;
            };
            let mut own: Vec<IpAddr> = of(link.index).map(|one| one.address).collect();
            own.sort_by_key(|address| self.wants.rank(&link.name, *address));
            let (interfaces, macs) = now.entry(place.port).or_default();
            let over = links.iter().filter(|one| {
                one.macvlan_over == Some(link.index) && one.up && of(one.index).next().is_some()
            });
            for macvlan in over {
                own.extend(of(macvlan.index).map(|one| one.address));
                macs.extend(macvlan.mac.map(|mac| (place.vlan, mac)));
            }
            own.extend(&others);
            interfaces.push((place.vlan, own));
        }
        for (port, own) in &now {
            if self.addresses.get(port) != Some(own) {
                let (interfaces, macs) = own.clone();
                (self.notice)(Notice::Addresses(*port, interfaces, macs));
            }
        }
        self.addresses = now;
    }

    pub(super) fn carrier(&mut self, port: PortId, carrier: bool) {
        for index in self.links_of(port) {
            let settings = LinkSettings {
                carrier: Some(carrier),
                ..LinkSettings::default()
            };
            self.request(
                set_link(index, &settings),
                format!("a carrier of link {index}"),
            );
        }
    }

    pub(super) fn speed(&mut self, port: PortId, mbps: u32) {
        for index in self.links_of(port) {
            // A kernel without this has no speed for a TAP, and nothing depends on it.
            if let Some(ethtool) = &mut self.ethtool
                && let Err(source) = ethtool.set_speed(index, mbps)
            {
                let what = format!("a speed of {mbps} Mb/s of link {index}");
                (self.notice)(Notice::Refused(RefusedByLinux { what, source }));
            }
        }
    }

    pub(super) fn links_of(&self, port: PortId) -> Vec<u32> {
        let links = self.mirror.model().links().iter();
        let ports = self.mirror.differ().ports();
        let of_port = links.filter(|link| {
            let place = ports.own(link.index);
            place.is_some_and(|place| place.port == port)
        });
        of_port.map(|link| link.index).collect()
    }
}

/// Returns true for an address that is this machine's wherever a packet comes from: neither of the loopback nor of a link alone.
fn is_ours_anywhere(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}
