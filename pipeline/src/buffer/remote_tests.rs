//! Tests of the laws that hold for all workers together, where each has seen all that the others published.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::config::{BufferConfig, ControlReserve, GroupConfig, PoolConfig};
use super::super::group_id::GroupId;
use super::super::in_flight::Charge;
use super::super::ledger::UsageLedger;
use super::*;
use crate::units::{Priority, WorkerId};

const PORTS: usize = 2;
const WORKERS: u8 = 3;
const LOSSLESS: u8 = 0b0001_1000;
const QUEUE: QueueAdmission = QueueAdmission {
    queued: Amount::ZERO,
    lossless: true,
    reserve: Amount::ZERO,
};

/// Headroom of each group, and of all together, in bytes.
type Headroom = (u64, u64);

fn config((each, all): Headroom) -> BufferConfig {
    let group = |priority: usize| GroupConfig {
        lossless: LOSSLESS & 1 << priority != 0,
        headroom: each,
        xon_offset: 1_000,
        ..GroupConfig::default()
    };
    BufferConfig {
        pool: PoolConfig {
            bytes: 60_000,
            frames: 200,
            alpha_256: 256,
        },
        min_frame: 500,
        shared_headroom: Some(all),
        control: ControlReserve::default(),
        groups: vec![std::array::from_fn(group); PORTS],
    }
}

/// All workers receive from all ports.
fn workers(config: &BufferConfig) -> Vec<Buffer> {
    let ledger = Arc::new(UsageLedger::new(WORKERS.into(), PORTS));
    let worker =
        |id| Buffer::of_worker(config, Arc::clone(&ledger), WorkerId(id), &[WORKERS; PORTS]);
    (0..WORKERS).map(worker).collect()
}

#[derive(Debug, Clone)]
enum Op {
    /// Frame of this length that a worker receives from a port with a priority.
    Charge(u8, u8, u8, u16),
    /// Release of a held frame, whichever, by a worker.
    Release(u8, prop::sample::Index),
    Repartition(Headroom),
}

fn headroom() -> impl Strategy<Value = Headroom> {
    (1_000u64..9_000, 1_000u64..20_000)
}

fn op() -> impl Strategy<Value = Op> {
    let priority = prop::sample::select(&[0u8, 3, 4][..]);
    prop_oneof![
        12 => (0..WORKERS, 0..PORTS as u8, priority, 84u16..3_000)
            .prop_map(|(worker, port, priority, len)| Op::Charge(worker, port, priority, len)),
        4 => (0..WORKERS, any::<prop::sample::Index>()).prop_map(|(worker, which)| Op::Release(worker, which)),
        1 => headroom().prop_map(Op::Repartition),
    ]
}

/// Sum of the amounts that the workers hold here each.
fn sum(all: &[Buffer], of: impl Fn(&Buffer) -> Amount) -> Amount {
    all.iter().map(of).fold(Amount::ZERO, Amount::plus)
}

fn refresh(all: &mut [Buffer]) {
    let counters: [PortCounters; PORTS] = std::array::from_fn(|_| PortCounters::default());
    for worker in &mut *all {
        worker.publish_all(counters.iter());
        worker.refresh();
        worker.publish_usage();
    }
    for worker in all {
        worker.refresh();
    }
}

proptest! {
    /// Law: workers that have seen each other's parts have one pool and one group between them. They agree on what is free, on the headroom in
    /// use and on the senders to be paused; headroom is bounded for each group and for all, and a new partition takes what the others hold into account.
    #[test]
    fn workers_that_see_each_other_have_one_buffer(first in headroom(), ops in prop::collection::vec(op(), 1..150)) {
        let mut all = workers(&config(first));
        let mut limits = first;
        let mut held: Vec<(GroupId, u16)> = Vec::new();
        for op in ops {
            match op {
                Op::Charge(worker, port, priority, len) => {
                    let id = GroupId::new(WorkerId(worker), PortId(port), Priority::new(priority));
                    let buffer = &mut all[usize::from(worker)];
                    let before = buffer.in_headroom();
                    if buffer.charge(id, len, QUEUE).is_ok() {
                        held.push((id, len));
                    }
                    let limit = config(limits).headroom();
                    prop_assert!(buffer.in_headroom() == before || buffer.in_headroom().within(limit));
                }
                Op::Release(worker, which) if !held.is_empty() => {
                    let (group, len) = held.swap_remove(which.index(held.len()));
                    all[usize::from(worker)].release(Charge { group, amount: Amount::frame(len) });
                }
                Op::Release(..) => {}
                Op::Repartition(headroom) => {
                    let is_exact = sum(&all, |buffer| buffer.in_shared).within(config(limits).shared());
                    limits = headroom;
                    for buffer in &mut all {
                        buffer.repartition(&config(headroom));
                    }
                    let free: Vec<Amount> = all.iter().map(Buffer::free).collect();
                    refresh(&mut all);
                    prop_assert!(!is_exact || all.iter().map(Buffer::free).eq(free));
                }
            }
            refresh(&mut all);
            let shared = config(limits).shared();
            let free = shared.minus(sum(&all, |buffer| buffer.in_shared));
            let in_headroom = sum(&all, Buffer::in_headroom_here);
            let wanted = all[0].wants_pause(PortId(0), LOSSLESS, 0);
            for buffer in &all {
                prop_assert_eq!(buffer.free(), free);
                prop_assert!(buffer.in_headroom() == in_headroom || !in_headroom.within(config(limits).headroom()));
                prop_assert_eq!(buffer.wants_pause(PortId(0), LOSSLESS, 0), wanted);
            }
        }
    }
}

/// Law: frames of one group that several workers receive take its headroom once.
#[test]
fn workers_share_the_headroom_of_a_group() {
    let config = config((4_000, 20_000));
    let mut all = workers(&config);
    let mut taken = Amount::ZERO;
    for turn in 0..300 {
        let at = turn % all.len();
        let id = GroupId::new(all[at].me, PortId(0), Priority::new(3));
        let _ = all[at].charge(id, 1_000, QUEUE);
        refresh(&mut all);
        taken = sum(&all, |buffer| buffer.groups[3].headroom);
        assert!(taken.within(config.amount(4_000)), "{taken:?}");
    }
    assert_eq!(taken.bytes, 4_000);
}

/// Law: the owner's storm is known to each worker that receives on the port.
#[test]
fn a_storm_of_a_port_is_known_to_its_other_receivers() {
    let all = workers(&config((4_000, 20_000)));
    all[0].publish_dropping(PortId(1), 0b1000);
    let known = |port| {
        all.iter()
            .map(|buffer| buffer.dropping_elsewhere(PortId(port)))
            .collect::<Vec<_>>()
    };
    assert_eq!(known(1), [0, 0b1000, 0b1000]);
    assert_eq!(known(0), [0; 3]);
    all[0].publish_dropping(PortId(1), 0);
    assert_eq!(known(1), [0; 3]);
}
