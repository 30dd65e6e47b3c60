use super::*;
use crate::table::tests::{flow, key};
use proptest::prelude::*;
use std::collections::VecDeque;

const ALWAYS: Nanos = Nanos::ZERO;

fn table(flows: u32) -> (FlowTable, Vec<u32>) {
    let mut table = FlowTable::new(flows as usize, 1);
    let all = (0..flows).map(|qpn| table.insert(key(qpn), flow(Nanos::ZERO)).unwrap());
    let all = all.collect();
    (table, all)
}

fn recent(table: &FlowTable, list: &QueueList, since: Nanos) -> Vec<u32> {
    table.recent(list, since).collect()
}

#[test]
fn a_queue_list_goes_round() {
    let (mut table, flows) = table(3);
    let mut list = QueueList::EMPTY;
    for index in &flows {
        table.list(&mut list, *index);
        table.list(&mut list, *index);
    }
    assert_eq!(list.len(), 3);
    let mut seen: Vec<_> = (0..6).filter_map(|_| table.advance(&mut list)).collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [flows[0], flows[0], flows[1], flows[1], flows[2], flows[2]]
    );
    for index in flows {
        table.unlist(&mut list, index);
        table.unlist(&mut list, index);
    }
    assert_eq!((list.len(), table.advance(&mut list)), (0, None));
}

/// Law: contributions are recorded in the middle of a round, and the round goes on as it was.
#[test]
fn contributing_does_not_change_the_round() {
    let (mut table, flows) = table(5);
    let mut list = QueueList::EMPTY;
    for index in flows.iter().rev() {
        table.list(&mut list, *index);
    }
    let mut seen = Vec::new();
    for _ in 0..10 {
        let index = table.advance(&mut list).unwrap();
        table.contributed(&mut list, index, Nanos(1));
        seen.push(index);
    }
    assert_eq!(seen, [flows.clone(), flows].concat());
}

#[test]
fn the_newest_pushes_the_oldest_out() {
    let most = u32::try_from(RECENT).unwrap();
    let (mut table, flows) = table(most + 2);
    let mut list = QueueList::EMPTY;
    for (index, now) in flows.iter().zip(1..) {
        table.list(&mut list, *index);
        table.contributed(&mut list, *index, Nanos(now));
    }
    let newest_first: Vec<_> = flows.iter().skip(2).rev().copied().collect();
    assert_eq!(recent(&table, &list, ALWAYS), newest_first);
    assert_eq!(list.len(), flows.len(), "they are still read");
    // A flow that is in the list already displaces none.
    table.contributed(&mut list, flows[2], Nanos(9_000));
    assert_eq!(recent(&table, &list, ALWAYS).len(), RECENT);
    assert_eq!(recent(&table, &list, Nanos(9_000)), [flows[2]]);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    List(usize),
    Contributed(usize),
    Activate(usize),
    Rest,
    Unlist(usize),
    Advance,
}

fn step() -> impl Strategy<Value = Step> {
    let flow = 0..6usize;
    prop_oneof![
        flow.clone().prop_map(Step::List),
        flow.clone().prop_map(Step::Contributed),
        flow.clone().prop_map(Step::Activate),
        flow.prop_map(Step::Unlist),
        Just(Step::Advance),
        Just(Step::Rest),
    ]
}

proptest! {
    /// Law: whatever happens, the lists equal two queues of numbers, and every step of the round leads to a listed flow.
    #[test]
    fn the_lists_are_what_a_model_says(steps in prop::collection::vec(step(), 0..60)) {
        let (mut table, flows) = table(6);
        let mut list = QueueList::EMPTY;
        let (mut round, mut last) = (VecDeque::new(), VecDeque::new());
        let mut active = VecDeque::new();
        for (step, now) in steps.into_iter().zip(1..) {
            match step {
                Step::List(n) => {
                    table.list(&mut list, flows[n]);
                    if !round.contains(&flows[n]) {
                        round.push_front(flows[n]);
                    }
                }
                // Like the ledger: of listed flows only.
                Step::Contributed(n) => if round.contains(&flows[n]) {
                    table.contributed(&mut list, flows[n], Nanos(now));
                    last.retain(|(index, _)| *index != flows[n]);
                    last.push_front((flows[n], now));
                },
                Step::Activate(n) => if round.contains(&flows[n]) {
                    let new = !active.contains(&flows[n]);
                    prop_assert_eq!(table.activate(&mut list, flows[n]), new);
                    if new {
                        active.push_back(flows[n]);
                    }
                }
                Step::Rest => prop_assert_eq!(table.take_active(&mut list), active.pop_front()),
                Step::Unlist(n) => {
                    active.retain(|index| *index != flows[n]);
                    table.unlist(&mut list, flows[n]);
                    round.retain(|index| *index != flows[n]);
                    last.retain(|(index, _)| *index != flows[n]);
                }
                Step::Advance => {
                    let read = table.advance(&mut list);
                    prop_assert_eq!(read.is_none(), round.is_empty());
                    prop_assert!(read.is_none_or(|index| round.contains(&index)));
                }
            }
            prop_assert_eq!((list.len(), list.active()), (round.len(), active.len()));
            let since = now / 2;
            let model: Vec<_> = last.iter().filter(|(_, at)| *at >= since).map(|(index, _)| *index).collect();
            prop_assert_eq!(recent(&table, &list, Nanos(since)), model);
        }
        // From the beginning, once round.
        list.cursor = NONE;
        let all: Vec<_> = (0..list.len()).filter_map(|_| table.advance(&mut list)).collect();
        prop_assert_eq!(all, Vec::from(round));
    }
}
