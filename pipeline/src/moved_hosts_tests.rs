use super::*;
use proptest::prelude::*;

fn host(n: u32) -> HostAddress {
    HostAddress::from(IpAddr::from(n.to_be_bytes()))
}

#[test]
fn the_table_holds_what_was_added_and_not_removed_and_64_at_most() {
    let table = MovedHosts::new(Priority::new(5));
    assert!((0..64).all(|n| table.add(host(n))));
    assert!(table.add(host(7)), "a host that is moved already");
    assert!(!table.add(host(64)) && !table.holds(host(64)));
    assert!(table.remove(host(7)) && !table.remove(host(7)));
    assert!(table.add(host(64)) && table.holds(host(64)));
    assert_eq!(table.hosts().len(), 64);
    table.clear();
    assert!(table.hosts().is_empty() && table.priority() == Priority::new(5));
}

#[test]
fn a_copy_is_renewed_only_when_the_table_has_changed() {
    let table = Arc::new(MovedHosts::new(Priority::new(5)));
    let mut view = MovedView::new(Arc::clone(&table));
    assert!(view.refresh() && !view.refresh());
    assert_eq!((view.is_empty(), view.share()), (true, None));
    table.add(host(1));
    table.set_share(1, 4);
    assert!(view.is_empty() && view.refresh() && !view.refresh());
    assert_eq!(view.share(), Some(HostShare { moved: 1, all: 4 }));
    // Nothing differs: the workers copy nothing.
    table.add(host(1));
    table.set_share(1, 4);
    assert!(!view.refresh());
    table.remove(host(1));
    assert!(view.refresh() && view.is_empty());
}

#[test]
fn a_mapped_address_of_ipv6_is_not_the_host_of_ipv4() {
    let of = |text: &str| HostAddress::from(text.parse::<IpAddr>().unwrap());
    let table = MovedHosts::new(Priority::new(5));
    table.add(of("10.0.1.3"));
    assert!(table.holds(of("10.0.1.3")) && !table.holds(of("::ffff:10.0.1.3")));
    assert_eq!(of("2001:db8::7").address().to_string(), "2001:db8::7");
    assert_eq!(of("10.0.1.3").address().to_string(), "10.0.1.3");
}

proptest! {
    #![proptest_config(crate::cases::cases(64))]

    /// Law: the copy holds the hosts of the table and no others, whatever their addresses.
    #[test]
    fn a_copy_equals_the_table(changes in prop::collection::vec((any::<bool>(), any::<bool>(), 0u8..16), 0..200), unit in any::<u128>()) {
        let table = Arc::new(MovedHosts::new(Priority::new(5)));
        let mut view = MovedView::new(Arc::clone(&table));
        let mut model = std::collections::HashSet::new();
        let address = |v6: bool, n: u8| {
            let bits = unit.wrapping_mul(u128::from(n) + 1);
            HostAddress::from(if v6 { IpAddr::from(bits.to_be_bytes()) } else { IpAddr::from(low32(low64(bits)).to_be_bytes()) })
        };
        for (adds, v6, n) in changes {
            let host = address(v6, n);
            if adds {
                model.insert(host.address());
                table.add(host);
            } else {
                model.remove(&host.address());
                table.remove(host);
            }
            view.refresh();
            let all = [true, false].into_iter().flat_map(|v6| (0..16).map(move |n| address(v6, n)));
            for host in all {
                prop_assert_eq!(view.holds(host), model.contains(&host.address()));
            }
        }
    }
}
