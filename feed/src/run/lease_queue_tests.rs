use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::agent::Leases;

/// Time for which leases last.
const LASTS: u64 = 3_000_000;
/// Time between two requests: the switch accepts clients every 10 ms.
const REQUEST: usize = 10_000;
/// Simulated time.
const END: u64 = 7_000_000;

fn lease(queue_pair: u32) -> Lease {
    Lease {
        to: [10, 0, 1, 2].into(),
        from: None,
        queue_pair,
        remote_queue_pair: 17,
        udp_port: None,
    }
}

fn message(host: &str, expires: u64, leases: Vec<Lease>) -> LeaseMessage {
    LeaseMessage::new(host.parse().unwrap(), expires, leases)
}

/// Runs agents of hosts with so many leases each, and a feed, for 7 s; leases appear within the first second. Asserts that the switch
/// gets every lease of every host, never an ended one, and before its last one ended.
fn run(hosts: &[u32]) {
    let mut queue = LeaseQueue::default();
    let mut agents: Vec<_> = hosts
        .iter()
        .map(|_| Leases::new(Duration::from_micros(LASTS)))
        .collect();
    let mut held: BTreeMap<(Name, Lease), u64> = BTreeMap::new();
    for now in (0..END).step_by(REQUEST) {
        for (index, (agent, count)) in agents.iter_mut().zip(hosts).enumerate() {
            let phase = index as u64 % 10 * 10_000;
            if now < phase || !(now - phase).is_multiple_of(100_000) {
                continue;
            }
            let there = u64::from(*count) * (now + 100_000).min(1_000_000) / 1_000_000;
            let present = (2..).map(lease).take(usize::try_from(there).unwrap());
            let due = agent.update(Duration::from_micros(now), present);
            for some in due.chunks(200) {
                let refused =
                    queue.push(message(&format!("gpu-{index}"), now + LASTS, some.to_vec()));
                assert_eq!(refused, 0);
            }
        }
        let batch = queue.take(now);
        assert!(batch.iter().map(|of| of.rows.len()).sum::<usize>() <= MOST_ROWS);
        for of in batch {
            assert_eq!(of.expired, 0, "{} at {now} us", of.host);
            for (lease, expires) in of.rows {
                assert!(expires > now);
                let before = held.insert((of.host.clone(), lease), expires);
                assert!(
                    before.is_none_or(|before| before > now),
                    "{} had no lease for a time",
                    of.host
                );
            }
        }
    }
    assert_eq!(
        held.len(),
        hosts.iter().map(|count| *count as usize).sum::<usize>()
    );
    assert!(held.values().all(|expires| *expires > END));
}

#[test]
fn leases_of_200_quiet_hosts_arrive_in_time() {
    run(&[8; 200]);
}

#[test]
fn leases_of_a_host_with_20_000_arrive_in_time() {
    run(&[20_000]);
}

#[test]
fn a_large_host_does_not_hold_up_quiet_ones() {
    run(&[&[20_000][..], &[8; 200]].concat());
}

#[test]
fn the_newest_lease_waits_and_an_ended_one_is_dropped() {
    let mut queue = LeaseQueue::default();
    queue.push(message("gpu-1", 50, vec![lease(7), lease(8)]));
    queue.push(message("gpu-1", 70, vec![lease(7)]));
    // Messages of a host may be overtaken while it connects to another server.
    queue.push(message("gpu-1", 60, vec![lease(7)]));
    let of = queue.take(50).pop().unwrap();
    assert_eq!((of.rows, of.expired), (vec![(lease(7), 70)], 1));
    assert!(queue.take(50).is_empty() && queue.len == 0);
}

#[test]
fn a_host_that_fills_the_queue_leaves_room_to_others() {
    let mut queue = LeaseQueue::default();
    let most = u32::try_from(LEASES).unwrap();
    let flood = (2..most + 12).map(lease).collect();
    assert_eq!(queue.push(message("gpu-1", 9, flood)), 10);
    let some = |count: u32| (2..2 + count).map(lease).collect();
    assert_eq!(queue.push(message("gpu-2", 9, some(40))), 8);
    for host in 3..=HOSTS {
        let refused = queue.push(message(&format!("gpu-{host}"), 9, some(1)));
        assert_eq!(refused, 0);
    }
    assert_eq!(queue.push(message("one-more", 9, some(1))), 1);
    // All of them are served within a round.
    let mut served = BTreeSet::new();
    for _ in 0..HOSTS / HOSTS_AT_ONCE + 2 {
        served.extend(queue.take(0).into_iter().map(|of| of.host));
    }
    assert_eq!(served.len(), HOSTS);
}
