//! Next-hop groups with an identity: routes refer to them, and a change of one is one store, however many routes use it.
//!
//! The kernel's next-hop objects are such groups. Two of them with the same paths stay two, because each may change by itself.
//! Law: a group made in place of another, for the same prefix in the same batch, has its buckets assigned from that one's, so
//! that a routing daemon that gives a set of next hops another id moves no flow of those that stay.

use super::nexthop::{Adjacency, NextHopGroupId};
use super::prefix::{Family, Prefix};
use super::writer::{RouteError, RouteWriter, family_index};

impl RouteWriter {
    /// Makes a group that [`RouteWriter::change_group`] can change; a path that is listed twice has two shares, and without
    /// paths its routes are "no route". It exists until [`RouteWriter::drop_group`], and longer while a route uses it.
    ///
    /// # Errors
    /// Returns [`RouteError::Busy`] or [`RouteError::NextHops`]; nothing has changed then.
    pub fn make_group(&mut self, paths: &[Adjacency]) -> Result<NextHopGroupId, RouteError> {
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        let (hops, mut spare) = self.hops_of_spare();
        let group = hops.make(paths, None, &mut spare)?;
        self.named.made.push(group);
        Ok(group)
    }

    /// Gives a group of [`RouteWriter::make_group`] other paths, for every route that uses it; [`RouteWriter::commit`] makes
    /// the change visible.
    ///
    /// # Errors
    /// Returns [`RouteError::Busy`] or [`RouteError::NextHops`]; nothing has changed then.
    pub fn change_group(
        &mut self,
        group: NextHopGroupId,
        paths: &[Adjacency],
    ) -> Result<(), RouteError> {
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        let (hops, mut spare) = self.hops_of_spare();
        hops.change(group, paths, group, &mut spare)?;
        for family in [Family::V4, Family::V6] {
            if self.named.defaults.get(family_index(family)) == Some(&Some(group)) {
                self.set_default(family, paths)?;
            }
        }
        Ok(())
    }

    /// Drops a group of [`RouteWriter::make_group`].
    pub fn drop_group(&mut self, group: NextHopGroupId) {
        self.named.made.retain(|made| *made != group);
        self.hops.release(group);
    }

    /// Makes a prefix use a group of [`RouteWriter::make_group`], whatever it used before; [`RouteWriter::commit`] makes the
    /// change visible.
    ///
    /// # Errors
    /// Returns a [`RouteError`]; nothing has changed then.
    pub fn insert_by(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), RouteError> {
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        if prefix.is_default() {
            let paths = self.hops.shares(group);
            let own = self.set_default(prefix.family(), &paths)?;
            self.rib.insert(prefix, own);
            if let Some(place) = self.named.defaults.get_mut(family_index(prefix.family())) {
                *place = Some(group);
            }
            return Ok(());
        }
        let was = self.remember(prefix).filter(|was| *was != group);
        let made = self.named.made.iter().position(|made| *made == group);
        if let (Some(was), Some(made)) = (was, made) {
            let paths = self.hops.shares(group);
            let (hops, mut spare) = self.hops_of_spare();
            hops.change(group, &paths, was, &mut spare)?;
            self.named.made.swap_remove(made);
        }
        self.hops.hold_again(group);
        self.lead(prefix, group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::fib::FibReader;
    use crate::route::nexthop::Kind;
    use crate::route::writer::RouteCapacity;
    use crate::units::PortId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    fn path(port: u8) -> Adjacency {
        Adjacency {
            port: PortId(port),
            ..Adjacency::unusable(Kind::Forward)
        }
    }

    fn table(groups: usize) -> (RouteWriter, FibReader) {
        let capacity = RouteCapacity {
            ipv4_routes: 64,
            ipv6_routes: 64,
            adjacencies: 32,
            groups,
        };
        let (writer, mut readers) = RouteWriter::new(capacity, 1);
        (writer, readers.remove(0))
    }

    fn prefix(text: &str) -> Prefix {
        let (address, len) = text.split_once('/').unwrap();
        Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
    }

    /// Returns the port of each of 128 flows.
    fn flows(reader: &FibReader, address: IpAddr) -> Vec<u8> {
        let group = reader.group(address);
        let port = |hash| reader.resolve(group, || hash).port().0;
        (0..128).map(port).collect()
    }

    #[test]
    fn a_change_of_a_group_is_a_change_of_all_routes_by_it() {
        let (mut writer, mut reader) = table(4);
        let group = writer.make_group(&[path(1), path(2)]).unwrap();
        for text in ["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0", "2001:db8::/32"] {
            writer.insert_by(prefix(text), group).unwrap();
        }
        writer.commit();
        reader.refresh();
        writer.change_group(group, &[path(3)]).unwrap();
        let at = |reader: &FibReader, text: &str| flows(reader, text.parse().unwrap());
        assert!(
            at(&reader, "10.1.0.1").contains(&1),
            "not before the commit"
        );
        writer.commit();
        reader.refresh();
        for text in ["10.0.0.1", "10.1.0.1", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(at(&reader, text), [3; 128], "{text}");
        }
        // Same on the other pair.
        writer.insert_by(prefix("10.2.0.0/16"), group).unwrap();
        writer.remove(prefix("0.0.0.0/0")).unwrap();
        writer.commit();
        reader.refresh();
        assert_eq!(at(&reader, "10.1.0.1"), [3; 128]);
        writer.change_group(group, &[]).unwrap();
        writer.commit();
        reader.refresh();
        let kind = |text: &str| reader.paths(text.parse().unwrap()).next().unwrap().kind;
        assert_eq!(
            (kind("10.1.0.1"), kind("192.0.2.1")),
            (Kind::NoRoute, Kind::NoRoute)
        );
    }

    #[test]
    fn a_group_in_place_of_another_moves_only_the_flows_of_who_went() {
        let (mut writer, mut reader) = table(8);
        let net = prefix("10.0.0.0/8");
        let one = writer.make_group(&[path(1), path(2), path(3)]).unwrap();
        writer.insert_by(net, one).unwrap();
        writer.commit();
        reader.refresh();
        let before = flows(&reader, "10.0.0.1".parse().unwrap());
        let two = writer.make_group(&[path(1), path(3)]).unwrap();
        writer.insert_by(net, two).unwrap();
        writer.drop_group(one);
        writer.commit();
        reader.refresh();
        let after = flows(&reader, "10.0.0.1".parse().unwrap());
        for (before, after) in before.iter().zip(&after) {
            assert!(*before == 2 || before == after, "{before} became {after}");
        }
    }

    proptest! {
        #![proptest_config(crate::cases::cases(16))]
        /// Routes lead where a plain map says, groups have their paths, and ids without references are reused: with room for
        /// six groups, thousands come and go.
        #[test]
        fn groups_and_routes_are_as_a_map_has_them(
            steps in prop::collection::vec((0u8..5, 0usize..4, 0u8..12, prop::collection::vec(0u8..5, 0..4)), 1..300),
        ) {
            let prefixes = ["10.0.0.0/16", "10.0.0.0/24", "10.0.0.1/32", "0.0.0.0/0", "2001:db8::/32", "::/0"];
            let (mut writer, mut reader) = table(6);
            let mut groups: [Option<(NextHopGroupId, Vec<u8>)>; 4] = Default::default();
            let mut routes: BTreeMap<usize, usize> = BTreeMap::new();
            for (what, slot, which, ports) in steps {
                let paths: Vec<Adjacency> = ports.iter().map(|port| path(*port)).collect();
                let which = usize::from(which) % prefixes.len();
                let led = routes.values().any(|by| *by == slot);
                match (what, groups[slot].clone()) {
                    (0, None) => groups[slot] = Some((writer.make_group(&paths).unwrap(), ports)),
                    (0, Some((id, _))) => {
                        writer.change_group(id, &paths).unwrap();
                        groups[slot] = Some((id, ports));
                    }
                    (1, Some((id, _))) => {
                        writer.insert_by(prefix(prefixes[which]), id).unwrap();
                        routes.insert(which, slot);
                    }
                    (2, _) => {
                        writer.remove(prefix(prefixes[which])).unwrap();
                        routes.remove(&which);
                    }
                    (3, Some((id, _))) if !led => {
                        writer.drop_group(id);
                        groups[slot] = None;
                    }
                    (4, _) => {
                        writer.commit();
                        reader.refresh();
                        for (index, text) in prefixes.iter().enumerate() {
                            let Some(by) = routes.get(&index) else { continue };
                            let address = match index { 1 => "10.0.0.7", 3 => "192.0.2.1", 5 => "2001:db9::1", 0 => "10.0.9.9", _ => text.split_once('/').unwrap().0 };
                            let mut got: Vec<(Kind, u8)> = reader.paths(address.parse().unwrap()).map(|path| (path.kind, path.port.0)).collect();
                            got.sort_unstable_by_key(|(_, port)| *port);
                            got.dedup();
                            let mut want: Vec<(Kind, u8)> = groups[*by].as_ref().unwrap().1.iter().map(|port| (Kind::Forward, *port)).collect();
                            want.sort_unstable_by_key(|(_, port)| *port);
                            want.dedup();
                            if want.is_empty() {
                                want.push((Kind::NoRoute, 0));
                            }
                            prop_assert_eq!(got, want, "{}", text);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
