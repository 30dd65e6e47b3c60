//! Tests of admission and partition against a model that keeps the amounts of each group and no sums.

use proptest::prelude::*;

use super::super::config::{ControlReserve, GroupConfig, PoolConfig};
use super::super::in_flight::Charge;
use super::*;

/// Bytes and frames.
type Units = [u64; 2];

const PORTS: usize = 2;
/// A lossy priority, two lossless ones, and one of control frames.
const USED: [u8; 4] = [0, 3, 4, 6];
const LOSSLESS: u8 = 0b0001_1000;
const MIN_FRAME: u16 = 500;
const POOL: Units = [80_000, 200];
const CONTROL: ControlReserve = ControlReserve {
    priorities: 1 << 6,
    group: 840,
    own: 840,
    linux: 1_680,
};

fn units(amount: Amount) -> Units {
    [amount.bytes, amount.frames]
}

fn plus(a: Units, b: Units) -> Units {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Units, b: Units) -> Units {
    [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])]
}

fn within(a: Units, limit: Units) -> bool {
    a[0] <= limit[0] && a[1] <= limit[1]
}

fn min(a: Units, b: Units) -> Units {
    [a[0].min(b[0]), a[1].min(b[1])]
}

fn frames_of(bytes: u64, each: u16) -> Units {
    [bytes, bytes.div_ceil(each.into())]
}

/// Sizes that a test chooses, in bytes.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    reserved: u64,
    headroom: u64,
    shared_headroom: Option<u64>,
    xon: u64,
    xon_offset: u64,
}

const SIZES: Sizes = Sizes {
    reserved: 0,
    headroom: 5_000,
    shared_headroom: None,
    xon: 0,
    xon_offset: 1_000,
};

fn config(sizes: Sizes, alpha_256: u32) -> BufferConfig {
    let group = |priority: usize| GroupConfig {
        lossless: LOSSLESS & 1 << priority != 0,
        reserved: sizes.reserved,
        headroom: sizes.headroom,
        xon: sizes.xon,
        xon_offset: sizes.xon_offset,
    };
    BufferConfig {
        pool: PoolConfig {
            bytes: POOL[0],
            frames: POOL[1],
            alpha_256,
        },
        min_frame: MIN_FRAME,
        shared_headroom: sizes.shared_headroom,
        control: CONTROL,
        groups: vec![std::array::from_fn(group); PORTS],
    }
}

fn id(port: u8, priority: u8) -> GroupId {
    GroupId::new(WorkerId::FIRST, PortId(port), Priority::new(priority))
}

/// A queue without frames or reserve.
const QUEUE: QueueAdmission = QueueAdmission {
    queued: Amount::ZERO,
    lossless: false,
    reserve: Amount::ZERO,
};

/// Part of the buffer that a frame of a group went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Ordinary,
    Headroom,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    priority: u8,
    ordinary: Units,
    headroom: Units,
}

/// The buffer as docs/lossless.md describes it.
#[derive(Debug, Clone)]
struct Model {
    sizes: Sizes,
    alpha_256: u64,
    groups: Vec<Held>,
    /// Frames of the switch and those of Linux.
    originated: [Units; 2],
}

impl Model {
    fn new(sizes: Sizes, alpha_256: u32) -> Model {
        let held = |n: usize| Held {
            priority: (n % PRIORITIES) as u8,
            ordinary: [0; 2],
            headroom: [0; 2],
        };
        Model {
            sizes,
            alpha_256: alpha_256.into(),
            groups: (0..PORTS * PRIORITIES).map(held).collect(),
            originated: [[0; 2]; 2],
        }
    }

    fn is_lossless(priority: u8) -> bool {
        LOSSLESS & 1 << priority != 0
    }

    fn reserve(&self, priority: u8) -> Units {
        if Model::is_lossless(priority) {
            frames_of(self.sizes.reserved, MIN_FRAME)
        } else if CONTROL.priorities & 1 << priority != 0 {
            frames_of(CONTROL.group, 84)
        } else {
            [0; 2]
        }
    }

    fn headroom(&self) -> Units {
        match self.sizes.shared_headroom {
            Some(bytes) => frames_of(bytes, MIN_FRAME),
            None => (0..PORTS * LOSSLESS.count_ones() as usize).fold([0; 2], |sum, _| {
                plus(sum, frames_of(self.sizes.headroom, MIN_FRAME))
            }),
        }
    }

    /// S of docs/lossless.md: the pool without reserves and headroom.
    fn shared(&self) -> Units {
        let own = [CONTROL.own, CONTROL.linux].map(|bytes| frames_of(bytes, 84));
        let groups = self.groups.iter().map(|group| self.reserve(group.priority));
        let reserves = own.into_iter().chain(groups).fold([0; 2], plus);
        minus(minus(POOL, reserves), self.headroom())
    }

    fn free(&self) -> Units {
        let beyond = |group: &Held| minus(group.ordinary, self.reserve(group.priority));
        let groups = self.groups.iter().map(beyond);
        let own = [CONTROL.own, CONTROL.linux].map(|bytes| frames_of(bytes, 84));
        let own = self.originated.into_iter().zip(own);
        let own = own.map(|(held, reserve)| minus(held, reserve));
        minus(self.shared(), groups.chain(own).fold([0; 2], plus))
    }

    fn in_headroom(&self) -> Units {
        let all = self.groups.iter().map(|group| group.headroom);
        all.fold([0; 2], plus)
    }

    fn held(&self) -> Units {
        let groups = self.groups.iter().map(|group| group.ordinary);
        let groups = groups.fold(self.in_headroom(), plus);
        self.originated.into_iter().fold(groups, plus)
    }

    /// `alpha` times the free part of the pool.
    fn share(&self) -> Units {
        self.free().map(|part| part * self.alpha_256 / 256)
    }

    fn charge(&mut self, at: usize, len: u16, queue: QueueAdmission) -> Result<Part, DropReason> {
        let one = [len.into(), 1];
        let (free, share, all) = (self.free(), self.share(), self.headroom());
        let in_headroom = self.in_headroom();
        let reserve = self.reserve(self.groups[at].priority);
        let limit = frames_of(self.sizes.headroom, MIN_FRAME);
        let group = &mut self.groups[at];
        let after = plus(group.ordinary, one);
        let is_room = within(after, reserve) || within(one, free);
        let is_due = within(after, plus(reserve, share));
        if Model::is_lossless(group.priority) {
            if group.headroom == [0; 2] && is_room && is_due {
                group.ordinary = after;
                return Ok(Part::Ordinary);
            }
            let headroom = plus(group.headroom, one);
            if within(headroom, limit) && within(plus(in_headroom, one), all) {
                group.headroom = headroom;
                return Ok(Part::Headroom);
            }
            return Err(DropReason::HeadroomFull);
        }
        if !is_room {
            return Err(DropReason::BufferFull);
        }
        let queued = plus(units(queue.queued), one);
        let may_join =
            queue.lossless || within(queued, share) || within(queued, units(queue.reserve));
        if !may_join || !is_due && !within(after, reserve) {
            return Err(DropReason::QueueFull);
        }
        group.ordinary = after;
        Ok(Part::Ordinary)
    }

    fn charge_originated(&mut self, which: usize, len: u16) -> bool {
        let reserve = frames_of([CONTROL.own, CONTROL.linux][which], 84);
        let after = plus(self.originated[which], [len.into(), 1]);
        let fits = within(after, reserve) || within([len.into(), 1], self.free());
        if fits {
            self.originated[which] = after;
        }
        fits
    }

    fn release(&mut self, of: GroupId, len: u16) {
        let one = [len.into(), 1];
        if of.is_linux() || of.is_none() {
            let held = &mut self.originated[usize::from(of.is_linux())];
            *held = minus(*held, one);
            return;
        }
        let group = &mut self.groups[of.index()];
        let from_headroom = min(one, group.headroom);
        group.headroom = minus(group.headroom, from_headroom);
        group.ordinary = minus(group.ordinary, minus(one, from_headroom));
    }

    fn wants_pause(&self, at: usize, paused: bool) -> bool {
        let group = &self.groups[at];
        let held = plus(group.ordinary, group.headroom);
        let threshold = plus(self.reserve(group.priority), self.share());
        let in_headroom = group.headroom != [0; 2];
        if !paused {
            return in_headroom || !within(held, threshold);
        }
        let xon = frames_of(self.sizes.xon, MIN_FRAME);
        let offset = frames_of(self.sizes.xon_offset, MIN_FRAME);
        in_headroom || !within(held, xon) && !within(plus(held, offset), threshold)
    }

    /// Asserts that the buffer has what the model has, and pauses whom it pauses.
    fn assert_equals(&self, buffer: &Buffer) {
        for (at, (group, got)) in self.groups.iter().zip(&buffer.groups).enumerate() {
            let got = (units(got.ordinary), units(got.headroom));
            assert_eq!(got, (group.ordinary, group.headroom), "group {at}");
        }
        assert_eq!(units(buffer.free()), self.free());
        assert_eq!(units(buffer.in_headroom()), self.in_headroom());
        assert_eq!(units(buffer.used()), self.held());
        for port in 0..PORTS {
            for paused in [0, u8::MAX] {
                let wanted = Priority::all_of(LOSSLESS)
                    .filter(|one| self.wants_pause(port * PRIORITIES + one.index(), paused != 0));
                let wanted = wanted.fold(0, |all, one| all | one.bit());
                let got = buffer.wants_pause(PortId(port as u8), LOSSLESS, paused);
                assert_eq!(got, wanted, "port {port}, paused {paused:#x}");
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Charge(u8, u8, u16, QueueAdmission),
    Run(u8, u8, Vec<u16>, QueueAdmission),
    Originated(bool, u16),
    /// Release of a held frame, whichever.
    Release(prop::sample::Index),
    Repartition(Sizes),
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let bytes = |most: u64| prop_oneof![Just(0), 1..most];
    (
        bytes(4_000),
        bytes(9_000),
        prop::option::of(1_000u64..20_000),
        bytes(12_000),
        bytes(6_000),
    )
        .prop_map(
            |(reserved, headroom, shared_headroom, xon, xon_offset)| Sizes {
                reserved,
                headroom,
                shared_headroom,
                xon,
                xon_offset,
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    let len = || prop_oneof![84u16..200, 84u16..3_000];
    let group = || (0..PORTS as u8, prop::sample::select(&USED[..]));
    let amount = |most: u64| {
        (0..most, 0..20u64).prop_map(|(bytes, frames)| Amount {
            bytes: bytes * u64::from(frames > 0),
            frames,
        })
    };
    let queue =
        (amount(20_000), any::<bool>(), amount(5_000)).prop_map(|(queued, lossless, reserve)| {
            QueueAdmission {
                queued,
                lossless,
                reserve,
            }
        });
    let queue = || queue.clone();
    prop_oneof![
        12 => (group(), len(), queue()).prop_map(|((port, priority), len, queue)| Op::Charge(port, priority, len, queue)),
        4 => (group(), prop::collection::vec(len(), 1..16), queue())
            .prop_map(|((port, priority), lengths, queue)| Op::Run(port, priority, lengths, queue)),
        2 => (any::<bool>(), len()).prop_map(|(linux, len)| Op::Originated(linux, len)),
        8 => any::<prop::sample::Index>().prop_map(Op::Release),
        1 => sizes().prop_map(Op::Repartition),
    ]
}

proptest! {
    /// Each frame goes where the model has it go, or is dropped for the model's reason; a run that is admitted at once is one
    /// whose frames would all have been admitted one by one; partitions change under what is held.
    #[test]
    fn frames_are_admitted_as_by_the_model(
        first in sizes(),
        alpha in prop::sample::select(vec![64u32, 256, 1_024]),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let mut model = Model::new(first, alpha);
        let mut buffer = Buffer::new(&config(first, alpha));
        let mut held: Vec<(GroupId, u16)> = Vec::new();
        for op in ops {
            match op {
                Op::Charge(port, priority, len, queue) => {
                    let of = id(port, priority);
                    let before = model.groups[of.index()].clone();
                    let expected = model.charge(of.index(), len, queue);
                    prop_assert_eq!(buffer.charge(of, len, queue), expected.map(drop));
                    if expected.is_ok() {
                        held.push((of, len));
                    }
                    // The law by itself: while headroom is in use, nothing joins the ordinary part of the group.
                    if before.headroom != [0; 2] {
                        prop_assert_eq!(units(buffer.groups[of.index()].ordinary), before.ordinary);
                    }
                }
                Op::Run(port, priority, lengths, queue) => {
                    let of = id(port, priority);
                    let run = lengths.iter().fold(Amount::ZERO, |sum, len| sum.plus(Amount::frame(*len)));
                    if buffer.charge_run(of, run, queue) {
                        let mut queued = queue.queued;
                        for len in &lengths {
                            let part = model.charge(of.index(), *len, QueueAdmission { queued, ..queue });
                            prop_assert_eq!(part, Ok(Part::Ordinary));
                            queued = queued.plus(Amount::frame(*len));
                            held.push((of, *len));
                        }
                    }
                }
                Op::Originated(linux, len) => {
                    let of = if linux { GroupId::LINUX } else { GroupId::NONE };
                    let fits = model.charge_originated(usize::from(linux), len);
                    prop_assert_eq!(buffer.charge_originated(of, len).is_ok(), fits);
                    if fits {
                        held.push((of, len));
                    }
                }
                Op::Release(which) if !held.is_empty() => {
                    let (group, len) = held.swap_remove(which.index(held.len()));
                    model.release(group, len);
                    buffer.release(Charge { group, amount: Amount::frame(len) });
                    buffer.apply_releases();
                }
                Op::Release(_) => {}
                Op::Repartition(sizes) => {
                    model.sizes = sizes;
                    buffer.repartition(&config(sizes, alpha));
                }
            }
            model.assert_equals(&buffer);
        }
        for (group, len) in held {
            buffer.release(Charge { group, amount: Amount::frame(len) });
        }
        buffer.apply_releases();
        prop_assert_eq!((buffer.used(), buffer.in_headroom()), (Amount::ZERO, Amount::ZERO));
        prop_assert_eq!(units(buffer.free()), model.shared());
    }
}

/// Charges frames of 1,000 bytes until one goes to headroom.
fn fill(buffer: &mut Buffer, group: GroupId) -> u64 {
    let mut frames = 0;
    while buffer.groups[group.index()].headroom.is_zero() {
        buffer.charge(group, 1_000, QUEUE).unwrap();
        frames += 1;
    }
    frames
}

/// Room that others leave is not taken while headroom is in use: the sender is paused until its own frames have left.
#[test]
fn lossless_frames_do_not_enter_the_shared_part_while_headroom_is_in_use() {
    let mut buffer = Buffer::new(&config(SIZES, 256));
    let (ours, other) = (id(0, 3), id(1, 0));
    for _ in 0..20 {
        buffer.charge(other, 1_000, QUEUE).unwrap();
    }
    let taken = fill(&mut buffer, ours);
    let ordinary = buffer.groups[ours.index()].ordinary;
    let amount = Amount {
        bytes: 20_000,
        frames: 20,
    };
    buffer.release(Charge {
        group: other,
        amount,
    });
    buffer.apply_releases();
    assert!(
        buffer.free().bytes > 2 * ordinary.bytes,
        "far below its share"
    );
    buffer.charge(ours, 1_000, QUEUE).unwrap();
    assert!(!buffer.charge_run(ours, Amount::frame(1_000), QUEUE));
    let group = &buffer.groups[ours.index()];
    assert_eq!((group.ordinary, group.headroom.frames), (ordinary, 2));
    // With headroom empty the next frame is an ordinary one again.
    let amount = Amount {
        bytes: 2_000,
        frames: 2,
    };
    buffer.release(Charge {
        group: ours,
        amount,
    });
    buffer.apply_releases();
    buffer.charge(ours, 1_000, QUEUE).unwrap();
    let group = &buffer.groups[ours.index()];
    assert_eq!((group.ordinary.frames, group.headroom.frames), (taken, 0));
}

/// A run is admitted at once where there is room for all of it, whoever it is of.
#[test]
fn a_run_that_fits_is_admitted_at_once() {
    for priority in USED {
        let mut buffer = Buffer::new(&config(SIZES, 256));
        let run = Amount {
            bytes: 16_000,
            frames: 16,
        };
        let group = id(0, priority);
        assert!(buffer.charge_run(group, run, QUEUE), "priority {priority}");
        assert_eq!(buffer.used(), run);
        assert_eq!(buffer.groups[group.index()].ordinary, run);
    }
}

/// Smaller reserves and headroom give their room to the shared pool at once, and larger ones take it: also under a group that
/// holds more than it may now.
#[test]
fn a_repartition_moves_room_under_what_is_held() {
    let mut buffer = Buffer::new(&config(SIZES, 256));
    let group = id(0, 3);
    let taken = fill(&mut buffer, group);
    let free = buffer.free();
    let wide = Sizes {
        reserved: 3_000,
        headroom: 1_000,
        ..SIZES
    };
    buffer.repartition(&config(wide, 256));
    // Four reserves of 3,000 bytes in place of four times 4,000 of headroom; 3,000 of what is held lie in a reserve now.
    assert_eq!(buffer.free().bytes, free.bytes - 12_000 + 16_000 + 3_000);
    let held = buffer.groups[group.index()].held();
    assert_eq!(held.frames, taken);
    assert_eq!(
        buffer.charge(group, 1_000, QUEUE),
        Err(DropReason::HeadroomFull),
        "it holds all of the smaller headroom"
    );
    buffer.repartition(&config(SIZES, 256));
    assert_eq!(buffer.free(), free);
    buffer.charge(group, 1_000, QUEUE).unwrap();
    assert_eq!(buffer.groups[group.index()].headroom.frames, 2);
}

/// Frames beyond what is free are not admitted at once, though their bytes lie in the group's reserve: its part in packet buffers is used up.
#[test]
fn a_run_beyond_what_is_free_is_charged_frame_by_frame() {
    let sizes = Sizes {
        reserved: 3_000,
        ..SIZES
    };
    let mut buffer = Buffer::new(&config(sizes, 256));
    while buffer.free().bytes > 1_050 {
        buffer.charge_originated(GroupId::NONE, 1_000).unwrap();
    }
    let rest = u16::try_from(buffer.free().bytes - 50).unwrap();
    buffer.charge_originated(GroupId::NONE, rest).unwrap();
    assert!(buffer.free().frames > 1);
    let group = id(0, 3);
    for _ in 0..6 {
        buffer.charge(group, 84, QUEUE).unwrap();
    }
    assert!(!buffer.charge_run(group, Amount::frame(84), QUEUE));
    buffer.charge(group, 84, QUEUE).unwrap();
    assert_eq!(buffer.groups[group.index()].headroom.frames, 1);
}
