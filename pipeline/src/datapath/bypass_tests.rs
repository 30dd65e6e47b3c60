//! Tests of runs that bypass their queues against the same runs in queues.

use proptest::prelude::*;

use super::super::*;
use super::{DC, Path, WAN, data, path};
use crate::craft::Craft;
use crate::egress::serve::TxSink;
use crate::frame::{FrameVec, HeapFrame};

#[derive(Debug, Clone)]
enum Op {
    /// Burst received on a port: hosts, TOS and payload lengths.
    Burst(u8, Vec<(u8, u8, usize)>),
    /// Frame made by the switch, in this queue.
    Own(u8),
    /// Queues of `wan` that are held back from now on.
    Hold(u8),
    /// After this many nanoseconds a port may send this many frames; true if its sink reads their metadata, and the number
    /// of frames in hand that the device takes.
    Send(u8, u64, usize, bool, usize),
}

const HOSTS: [&str; 4] = ["10.0.2.2", "10.0.1.9", "10.0.100.7", "2001:db8:2::9"];
/// TOS of Not-ECT, ECT(0), and lossless DSCP 26 with ECT(0), ECT(0), CE.
const TOS: [u8; 5] = [0, 2, 106, 106, 107];

fn some() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(BURST), 1 => 1usize..BURST]
}

fn burst(one_queue: bool) -> BoxedStrategy<Vec<(u8, u8, usize)>> {
    // Bursts often are for one queue, and the same as the burst before, as real bursts are.
    let any = if one_queue {
        (0u8..1, 2usize..3)
    } else {
        (0u8..4, 0usize..TOS.len())
    };
    let usual = prop_oneof![2 => Just((0u8, 2usize)), 1 => any];
    let frame = (usual, 0usize..2000).prop_map(|((host, tos), payload)| (host, tos, payload));
    let alike = (frame.clone(), 1usize..=BURST).prop_map(|(frame, count)| vec![frame; count]);
    let mixed = prop::collection::vec(frame, 1..8);
    prop_oneof![4 => alike, 1 => mixed]
        .prop_map(|frames| {
            let with_tos = |(host, tos, payload): (u8, usize, usize)| (host, TOS[tos], payload);
            frames.into_iter().map(with_tos).collect()
        })
        .boxed()
}

fn send() -> impl Strategy<Value = Op> {
    (0u8..2, 0u64..40_000, some(), any::<bool>(), some())
        .prop_map(|(port, after, room, asks, takes)| Op::Send(port, after, room, asks, takes))
}

/// Either a single operation, or an iteration of the switch: a burst in on one port, out of the other as far as its device
/// takes it.
fn ops(one_queue: bool) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0u8..2, burst(one_queue)).prop_map(|(port, frames)| Op::Burst(port, frames)),
        1 => if one_queue { 3u8..4 } else { 0u8..8 }.prop_map(Op::Own),
        1 => prop_oneof![3 => Just(0u8), 1 => any::<u8>()].prop_map(Op::Hold),
        8 => send(),
    ];
    let turn = (burst(one_queue), any::<bool>(), some()).prop_map(|(frames, asks, takes)| {
        vec![
            Op::Burst(0, frames),
            Op::Send(1, 0, BURST, asks, takes),
            Op::Send(1, 200_000, BURST, asks, BURST),
        ]
    });
    let some = prop_oneof![1 => op.prop_map(|op| vec![op]), 1 => turn];
    prop::collection::vec(some, 1..40).prop_map(|ops| ops.concat())
}

/// Lengths of the frames that each port handed out and its device has not yet taken.
type Hands = [Vec<u64>; 2];

/// Fills an empty hand, as the switch does; returns the frames that left, in their order.
fn fill<const ASKS: bool>(
    path: &mut Path,
    port: PortId,
    room: usize,
    now: Nanos,
) -> Vec<(Vec<u8>, Option<Meta>)> {
    let mut out = Narrow::<ASKS>(Vec::new(), room);
    path.egress(port, &mut out, now);
    out.0
}

/// Makes the device take this many frames of the hand.
fn take(path: &mut Path, port: PortId, hands: &mut Hands, frames: usize) {
    let hand = &mut hands[port.index()];
    let taken: Vec<u64> = hand.drain(..frames.min(hand.len())).collect();
    if !taken.is_empty() {
        path.sent(port, Sent::of(taken.iter().map(|length| *length as usize)));
    }
    path.publish_held();
}

/// Sink that takes only this many frames, and reads their metadata or not.
struct Narrow<const ASKS: bool>(Vec<(Vec<u8>, Option<Meta>)>, usize);

impl<const ASKS: bool> TxSink<HeapFrame> for Narrow<ASKS> {
    fn free_slots(&self) -> usize {
        self.1 - self.0.len()
    }

    fn put(&mut self, frame: Queued<HeapFrame>) {
        assert!(self.free_slots() > 0);
        let meta = ASKS.then_some(frame.meta);
        self.0.push((frame.buf.data().to_vec(), meta));
    }
}

/// Returns all accounts by which an operator could distinguish the two paths.
fn accounts(path: &Path) -> Vec<String> {
    let mut all = vec![format!("{:?} {:?}", path.buffer().used(), path.held)];
    for port in [DC, WAN] {
        all.push(format!("{:?} waiting {}", port, path.frames_queued(port)));
        all.push(format!("{:?}", path.counters().port(port.index())));
    }
    all
}

/// Frames that left a port, with their metadata if the sink reads it.
type Left = Vec<(Vec<u8>, Option<Meta>)>;

/// The same operations on a normal path, and on one whose runs all queue.
struct Two {
    paths: [Path; 2],
    hands: [Hands; 2],
    now: u64,
    /// Number of frames that arrived so far: the PSN of the next one.
    came: u32,
    /// Frames that left each path, by port, then in order.
    left: [[Left; 2]; 2],
}

impl Two {
    fn new(pool: u64) -> Two {
        let pool = PoolConfig {
            bytes: pool,
            frames: 400,
            alpha_256: 256,
        };
        Two {
            paths: [path(pool), path(pool)],
            hands: Default::default(),
            now: 0,
            came: 0,
            left: Default::default(),
        }
    }

    fn apply(&mut self, op: &Op) {
        if let Op::Send(_, after, ..) = op {
            self.now += after;
        }
        let now = Nanos(self.now);
        let first = self.came;
        if let Op::Burst(_, frames) = op {
            self.came += frames.len() as u32;
        }
        for (which, (path, hands)) in self.paths.iter_mut().zip(&mut self.hands).enumerate() {
            match op {
                Op::Burst(from, frames) => {
                    let craft = |(&(host, tos, payload), psn): (&(u8, u8, usize), u32)| {
                        let mut craft = Craft {
                            dst_mac: super::mac(*from),
                            tos,
                            payload: vec![0; payload],
                            ..data(HOSTS[usize::from(host)])
                        };
                        craft.bth.as_mut().expect("RoCE").psn = psn;
                        HeapFrame::new(&craft.frame())
                    };
                    let mut burst = Box::new(frames.iter().zip(first..).map(craft).collect());
                    path.ingress(PortId(*from), &mut burst, now);
                    if which == 1 {
                        path.queue_bypassed(DC);
                        path.queue_bypassed(WAN);
                    }
                }
                Op::Own(priority) => {
                    let _ = path.originate(
                        WAN,
                        Priority::new(*priority),
                        HeapFrame::new(&[0; 74]),
                        now,
                    );
                }
                Op::Hold(queues) => path.set_tx_blocked(WAN, *queues),
                Op::Send(port, _, room, asks, takes) => {
                    let port = PortId(*port);
                    if hands[port.index()].is_empty() {
                        let fill = if *asks { fill::<true> } else { fill::<false> };
                        let left = fill(path, port, *room, now);
                        hands[port.index()] =
                            left.iter().map(|(data, _)| data.len() as u64).collect();
                        self.left[which][port.index()].extend(left);
                    }
                    take(path, port, hands, *takes);
                }
            }
        }
    }

    /// Returns all accounts of each path that an operator could see.
    fn accounts(&self) -> [Vec<String>; 2] {
        self.paths.each_ref().map(accounts)
    }

    fn shut_down(&mut self) {
        for (path, hands) in self.paths.iter_mut().zip(&mut self.hands) {
            take(path, DC, hands, BURST);
            take(path, WAN, hands, BURST);
            path.shut_down();
            assert_eq!(
                (path.buffer().used().frames, path.buffer().used().bytes),
                (0, 0)
            );
        }
    }
}

proptest! {
    /// With one queue in use nothing distinguishes the two paths: frames, marks, accounts and times, after every operation.
    #[test]
    fn a_run_that_does_not_queue_leaves_as_one_that_does(
        ops in ops(true),
        pool in prop_oneof![Just(1u64 << 20), Just(60_000)],
    ) {
        let mut two = Two::new(pool);
        for op in ops {
            two.apply(&op);
            prop_assert_eq!(&two.left[0], &two.left[1]);
            let [short, long] = two.accounts();
            prop_assert_eq!(short, long);
        }
        two.shut_down();
        let [short, long] = two.accounts();
        prop_assert_eq!(short, long);
    }

    /// With several queues in use runs leave whole where queues would take turns. No frame is lost uncounted, and each queue
    /// keeps the order of arrival. The frames each path refuses may differ, as depths do.
    #[test]
    fn runs_of_several_queues_keep_their_order(ops in ops(false)) {
        let mut two = Two::new(1 << 20);
        for op in ops {
            two.apply(&op);
            for path in &two.paths {
                path.publish_held();
                super::assert_conserved(path);
            }
        }
        for port in [DC, WAN] {
            for dscp_bits in [0, 104] {
                let [short, long] = two.left.each_ref().map(|left| psns(&left[port.index()], dscp_bits));
                for psns in [&short, &long] {
                    prop_assert!(psns.is_sorted_by(|before, after| before < after), "{psns:?}");
                }
                if two.paths.iter().all(|path| super::drops(path, DC).is_empty() && super::drops(path, WAN).is_empty()) {
                    let both = short.len().min(long.len());
                    prop_assert_eq!(&short[..both], &long[..both]);
                }
            }
        }
        two.shut_down();
    }
}

/// Returns the PSNs of the untagged IPv4 packets of one DSCP among those that left.
fn psns(left: &[(Vec<u8>, Option<Meta>)], dscp_bits: u8) -> Vec<u32> {
    let frames = left.iter().map(|(data, _)| data);
    frames
        .filter(|data| data.len() > 74 && data[12] == 8 && data[15] & !3 == dscp_bits)
        .map(|data| u32::from_be_bytes([0, data[51], data[52], data[53]]))
        .collect()
}

/// A run into an idle queue does not queue; the laws above would hold if every run queued.
#[test]
fn a_run_into_an_idle_queue_does_not_queue() {
    let mut path = path(super::AMPLE);
    for (tos, now) in [(0, 1), (106, 1_000_000)] {
        let craft = Craft {
            tos,
            ..data("10.0.2.2")
        };
        let mut burst = Box::new((0..8).map(|_| HeapFrame::new(&craft.frame())).collect());
        path.ingress(DC, &mut burst, Nanos(now));
        assert_eq!(
            (
                path.egress_side.bypass[WAN].frames(),
                path.frames_queued(WAN)
            ),
            (8, 8)
        );
        let left = fill::<false>(&mut path, WAN, BURST, Nanos(now));
        assert_eq!(left.len(), 8);
        let mut hands = [Vec::new(), vec![craft.frame().len() as u64; 8]];
        take(&mut path, WAN, &mut hands, 3);
        assert_eq!(path.buffer().used().frames, 5);
        take(&mut path, WAN, &mut hands, 5);
        assert_eq!(
            (path.buffer().used().frames, path.buffer().used().bytes),
            (0, 0)
        );
        assert!(path.egress_side.bypass[WAN].is_empty());
    }
}

fn burst_to(host: &str, from: u8, frames: usize, payload: usize, tos: u8) -> FrameVec<HeapFrame> {
    let craft = Craft {
        dst_mac: super::mac(from),
        tos,
        payload: vec![0; payload],
        ..data(host)
    };
    Box::new(
        (0..frames)
            .map(|_| HeapFrame::new(&craft.frame()))
            .collect(),
    )
}

/// Each port has its own bypass slots. Earlier defect: a worker had one such slot, and a second port's burst put the first
/// one's into its queue.
#[test]
fn two_ports_do_not_put_each_other_into_queues() {
    let mut path = path(super::AMPLE);
    path.ingress(
        DC,
        &mut burst_to("10.0.2.2", 0, 16, 100, 106),
        Nanos(1_000_000),
    );
    path.ingress(
        WAN,
        &mut burst_to("10.0.1.9", 1, 16, 100, 106),
        Nanos(1_000_000),
    );
    let waiting = [DC, WAN].map(|port| path.egress_side.bypass[port].frames());
    assert_eq!(waiting, [16, 16]);
    // Another priority of the same port has its own slot.
    path.ingress(
        DC,
        &mut burst_to("10.0.2.2", 0, 16, 100, 2),
        Nanos(1_000_000),
    );
    assert_eq!(path.egress_side.bypass[WAN].frames(), 16 + 16);
    assert_eq!(
        fill::<false>(&mut path, WAN, BURST, Nanos(1_000_000)).len(),
        32
    );
    assert_eq!(path.counters().bursts.bypassed.get(), 1);
}

/// A port shaped to less than a burst an iteration sends what its rate allows, and the other frames wait where they are.
#[test]
fn a_run_leaves_in_part_where_the_rate_does_not_let_all_of_it_go() {
    let mut path = path(super::AMPLE);
    path.ingress(
        DC,
        &mut burst_to("10.0.2.2", 0, BURST, 1024, 0),
        Nanos(1_000_000),
    );
    let first = fill::<false>(&mut path, WAN, BURST, Nanos(1_000_000)).len();
    assert!((1..BURST).contains(&first), "{first}");
    assert_eq!(path.egress_side.bypass[WAN].frames(), BURST - first);
    assert_eq!(path.egress_side.ports[WAN].frames(), 0, "none queued");
    path.sent(WAN, Sent::of(vec![1082; first]));
    let rest = fill::<false>(&mut path, WAN, BURST, Nanos(2_000_000)).len();
    path.sent(WAN, Sent::of(vec![1082; rest]));
    let last = fill::<false>(&mut path, WAN, BURST, Nanos(3_000_000)).len();
    path.sent(WAN, Sent::of(vec![1082; last]));
    assert_eq!(first + rest + last, BURST);
    assert!(path.egress_side.bypass[WAN].is_empty());
    assert_eq!(path.buffer().used().frames, 0);
}

/// Sink with a transmit queue for each priority.
struct PerPrioritySink(Vec<Meta>);

impl TxSink<HeapFrame> for PerPrioritySink {
    fn free_slots(&self) -> usize {
        BURST
    }

    fn tx_queue(&self, priority: Priority) -> Priority {
        priority
    }

    fn put(&mut self, frame: Queued<HeapFrame>) {
        self.0.push(frame.meta);
    }
}

/// A tx_queue held up by its device releases nothing for frames that another tx_queue sends.
#[test]
fn each_lane_gives_back_its_own() {
    let mut path = path(super::AMPLE);
    path.ingress(
        DC,
        &mut burst_to("10.0.2.2", 0, 8, 100, 106),
        Nanos(1_000_000),
    );
    path.ingress(
        DC,
        &mut burst_to("10.0.2.2", 0, 8, 100, 0),
        Nanos(1_000_000),
    );
    let mut out = PerPrioritySink(Vec::new());
    path.egress(WAN, &mut out, Nanos(1_000_000));
    assert_eq!(out.0.len(), 16);
    let held = |path: &Path, priority: u8| {
        let group = GroupId::new(WorkerId::FIRST, DC, Priority::new(priority));
        path.buffer().group(group).unwrap().held().frames
    };
    let of_zero = out
        .0
        .iter()
        .filter(|meta| meta.priority == Priority::new(0));
    let sent = Sent::of(of_zero.map(|meta| usize::from(meta.len)));
    path.sent(
        WAN,
        Sent {
            tx_queue: Priority::new(0),
            ..sent
        },
    );
    path.egress_side.buffer.apply_releases();
    assert_eq!((held(&path, 3), held(&path, 0)), (8, 0));
}

/// A port at full rate may send its rate's bytes of one iteration in the next, however long iterations are, up to `away`.
#[test]
fn a_port_keeps_its_rate_over_turns_of_fifty_microseconds() {
    let rate = crate::units::BitRate(100_000_000_000);
    let mut config = super::port(1, Some(rate)).egress;
    config.max_absence = Nanos::from_micros(50);
    config.queues[3].ecn = None;
    let mut path = path(PoolConfig {
        bytes: 8 << 20,
        frames: 8_192,
        alpha_256: 1 << 16,
    });
    path.egress_side.ports[WAN] = crate::egress::port::EgressPort::new(&config, 1);
    let (mut sent, turns) = (0, 200u64);
    for turn in 1..=turns {
        let now = Nanos::from_micros(50 * turn);
        while path.frames_queued(WAN) < 1_200 {
            path.ingress(DC, &mut burst_to("10.0.2.2", 0, BURST, 1024, 106), now);
        }
        loop {
            let mut out = super::Outgoing::new();
            path.egress(WAN, &mut out, now);
            let lengths = out.iter().map(|frame| frame.buf.data().len());
            path.sent(WAN, Sent::of(lengths));
            let wire = out.iter().map(|frame| u64::from(frame.meta.wire_len()));
            sent += wire.sum::<u64>();
            if out.len() < BURST {
                break;
            }
        }
    }
    let line = rate.bytes_in(Nanos::from_micros(50 * (turns - 1)));
    assert!(sent * 100 >= line * 99, "{sent} of {line}");
}

/// Sink of a device whose ring takes only this many wire bytes now.
struct Bounded {
    frames: Vec<Meta>,
    credit: i64,
}

impl TxSink<HeapFrame> for Bounded {
    fn free_slots(&self) -> usize {
        BURST - self.frames.len()
    }

    fn byte_budget(&self) -> i64 {
        self.credit
    }

    fn put(&mut self, frame: Queued<HeapFrame>) {
        self.credit -= i64::from(frame.meta.wire_len());
        self.frames.push(frame.meta);
    }
}

/// Law: runs of several queues that bypass them together leave within one budget, and one frame.
#[test]
fn runs_of_several_queues_fit_the_budget_together() {
    const CREDIT: i64 = 5_000;
    let mut path = path(super::AMPLE);
    for tos in [0, 106] {
        let mut frames = burst_to("10.0.2.2", 0, 4, 1_000, tos);
        path.ingress(DC, &mut frames, Nanos(1_000_000));
    }
    assert_eq!(path.egress_side.bypass[WAN].frames(), 8);
    let mut out = Bounded {
        frames: Vec::new(),
        credit: CREDIT,
    };
    path.egress(WAN, &mut out, Nanos(1_000_000));
    let frame = i64::from(out.frames[0].wire_len());
    assert!((1 - frame..=0).contains(&out.credit), "{}", out.credit);
}

/// No more is scheduled than the device's ring takes, and one frame. Earlier defect: up to a burst, or 20 us of the rate,
/// was in hand when the peer's XOFF came, and was sent regardless: ten times what an IEEE peer's headroom holds.
#[test]
fn no_more_is_in_hand_when_the_peer_pauses_than_the_ring_takes() {
    const CREDIT: i64 = 5_000;
    for waiting in [16, 4 * BURST] {
        let pause = crate::pause::PauseConfig {
            honour: 1 << 3,
            ..crate::pause::PauseConfig::off()
        };
        let lossless = LosslessConfig {
            buffer: BufferConfig::plain(super::AMPLE, 2),
            ports: vec![pause; 2],
        };
        let mut path = path(super::AMPLE).with_lossless(lossless);
        for burst in 0..waiting / 16 {
            let mut frames = burst_to("10.0.2.2", 0, 16, 1024, 106);
            path.ingress(DC, &mut frames, Nanos(burst as u64));
        }
        let mut out = Bounded {
            frames: Vec::new(),
            credit: CREDIT,
        };
        path.egress(WAN, &mut out, Nanos(1_000_000));
        let bytes: i64 = out
            .frames
            .iter()
            .map(|meta| i64::from(meta.wire_len()))
            .sum();
        let frame = i64::from(out.frames[0].wire_len());
        assert!((CREDIT - frame..CREDIT + frame).contains(&bytes), "{bytes}");
        let xoff = crate::wire::mac_control::build(super::mac(9), 1 << 3, [u16::MAX; 8]);
        super::push(&mut path, WAN, &xoff, 1_000_001);
        out.credit = CREDIT;
        path.egress(WAN, &mut out, Nanos(1_000_002));
        assert_eq!(out.credit, CREDIT, "nothing more after the pause");
    }
}
