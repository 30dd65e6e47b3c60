use super::*;
use proptest::prelude::*;

fn serve(scheduler: &mut Scheduler, offered: u8, lengths: &[u16; 8], bytes: u64) -> [u64; 8] {
    let mut sent = [0; 8];
    while sent.iter().sum::<u64>() < bytes {
        let queue = scheduler
            .pick(offered, |queue| lengths[queue.index()])
            .unwrap();
        assert_ne!(offered & queue.bit(), 0, "a queue that was not offered");
        scheduler.sent(queue, i64::from(lengths[queue.index()]), false);
        sent[queue.index()] += u64::from(lengths[queue.index()]);
    }
    sent
}

proptest! {
    /// DWRR law: over a long backlog each queue's bytes are its weight's share, within one quantum and one frame.
    #[test]
    fn bytes_follow_the_weights(weights in prop::array::uniform8(1u8..=100), lengths in prop::array::uniform8(84u16..9240),
                                offered in 1u8..=255) {
        let mut scheduler = Scheduler::new(&weights.map(Discipline::Dwrr));
        let total: u64 = 40_000_000;
        let sent = serve(&mut scheduler, offered, &lengths, total);
        let sum: u64 = (0..8).filter(|q| offered & (1 << q) != 0).map(|q| u64::from(weights[q])).sum();
        let round = sum * 256;
        for queue in 0..8 {
            if offered & (1 << queue) == 0 {
                prop_assert_eq!(sent[queue], 0);
                continue;
            }
            let share = total * u64::from(weights[queue]) / sum;
            // One round may be in progress; and a frame may have overshot.
            let slack = round + 2 * 9240 + u64::from(weights[queue]) * 256;
            prop_assert!(sent[queue].abs_diff(share) <= slack, "queue {queue}: {} of {share}, slack {slack}", sent[queue]);
        }
    }
}

#[test]
fn strict_goes_first_and_the_highest_of_them() {
    let mut disciplines = [Discipline::Dwrr(10); 8];
    disciplines[6] = Discipline::Strict;
    disciplines[7] = Discipline::Strict;
    let mut scheduler = Scheduler::new(&disciplines);
    let head = |_: Priority| 84;
    assert_eq!(scheduler.pick(0b1111_1111, head), Some(Priority::new(7)));
    assert_eq!(scheduler.pick(0b0111_1111, head), Some(Priority::new(6)));
    assert!(scheduler.pick(0b0011_1111, head).unwrap().get() < 6);
    assert_eq!(scheduler.pick(0, head), None);
}

#[test]
fn a_queue_that_is_set_anew_owes_nothing_and_has_nothing_left() {
    let queue = Priority::new(0);
    for sent in [100, 20_000] {
        let mut scheduler = Scheduler::new(&[Discipline::Dwrr(10); 8]);
        assert_eq!(scheduler.pick(1, |_| 1_000), Some(queue));
        scheduler.sent(queue, sent, false);
        assert_ne!(scheduler.allowance(queue), 0);
        scheduler.set(queue, Discipline::Dwrr(20));
        assert_eq!(scheduler.allowance(queue), 0);
    }
}

#[test]
fn an_idle_queue_saves_nothing_up() {
    const QUANTUM: u64 = 50 * 256;
    let lengths = [1000; 8];
    let share = |scheduler: &mut Scheduler| {
        let sent = serve(scheduler, 0b11, &lengths, 10_000_000);
        assert!(sent[0].abs_diff(sent[1]) <= 2 * QUANTUM + 2000, "{sent:?}");
    };
    // Queue 0 alone for long, then both: from then on they share evenly.
    let mut scheduler = Scheduler::new(&[Discipline::Dwrr(50); 8]);
    serve(&mut scheduler, 0b01, &lengths, 10_000_000);
    share(&mut scheduler);
    // Queue 0 has a frame in each of many rounds, and is empty after it: the rest of its quantum is lost each time.
    let first = Priority::new(0);
    for _ in 0..1_000 {
        assert_eq!(scheduler.pick(0b01, |_| 1000), Some(first));
        scheduler.sent(first, 1000, true);
        assert_eq!(scheduler.allowance(first), 0);
        serve(&mut scheduler, 0b10, &lengths, QUANTUM);
    }
    share(&mut scheduler);
}

proptest! {
    /// Law: moved hosts have their number's share of what the others' queues weigh together, at least [`LEAST_PART`] of it; the queues of the others
    /// keep their proportions, and all further queues their part.
    #[test]
    fn a_split_divides_the_weight_of_the_others_and_nothing_else(
        weights in prop::array::uniform8(1u8..=100), others in 1u8..=255, moved in 0u8..8, share in (0u32..100, 0u32..100),
    ) {
        let others = others & !(1 << moved);
        prop_assume!(others != 0);
        let disciplines = weights.map(Discipline::Dwrr);
        let mut scheduler = Scheduler::new(&disciplines);
        let plain = scheduler.quantum;
        let share = HostShare { moved: share.0, all: share.1 };
        scheduler.set_split(Some(WeightSplit { moved: Priority::new(moved), others, share }));
        let split = scheduler.quantum;
        let shared: i64 = each(others).map(|queue| plain[queue.index()]).sum();
        let part = split[usize::from(moved)];
        let fair = shared * i64::from(share.moved.min(share.all)) / i64::from(share.all.max(1));
        prop_assert_eq!(part, fair.clamp(shared / 50, shared - shared / 50));
        for queue in Priority::all().filter(|queue| queue.get() != moved) {
            let (own, now) = (plain[queue.index()], split[queue.index()]);
            let kept = if others & queue.bit() != 0 { own * (shared - part) / shared } else { own };
            prop_assert_eq!(now, kept.max(1), "{}", queue.get());
        }
        // A weight that changes meanwhile is divided too, and everything is as before once no host is moved.
        scheduler.set(Priority::new(moved), Discipline::Dwrr(77));
        prop_assert_eq!(scheduler.quantum, split);
        scheduler.set(Priority::new(moved), disciplines[usize::from(moved)]);
        scheduler.set_split(None);
        prop_assert_eq!(scheduler.quantum, plain);
    }
}

#[test]
fn strict_queues_have_no_weight_to_divide() {
    let mut disciplines = [Discipline::Dwrr(10); 8];
    disciplines[3] = Discipline::Strict;
    let mut scheduler = Scheduler::new(&disciplines);
    let plain = scheduler.quantum;
    scheduler.set_split(Some(WeightSplit {
        moved: Priority::new(5),
        others: 1 << 3,
        share: HostShare { moved: 1, all: 4 },
    }));
    assert_eq!(scheduler.quantum, plain);
}
