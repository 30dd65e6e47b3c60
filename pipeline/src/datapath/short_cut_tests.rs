//! The burst that does not queue against the same burst in a queue.

use proptest::prelude::*;

use super::super::*;
use super::{DC, Path, WAN, data, path};
use crate::craft::Craft;
use crate::frame::HeapFrame;

#[derive(Debug, Clone)]
enum Op {
    /// A burst by a port: hosts, TOS and payloads.
    Burst(u8, Vec<(u8, u8, usize)>),
    /// A frame of the switch's own, in this queue.
    Own(u8),
    /// Queues of `wan` that are held back from now on.
    Hold(u8),
    /// After so many nanoseconds a port may send so many frames.
    Send(u8, u64, usize),
}

const HOSTS: [&str; 4] = ["10.0.2.2", "10.0.1.9", "10.0.100.7", "2001:db8:2::9"];
/// Not ECT, ECT(0), and lossless DSCP 26 with ECT(0), ECT(0), CE.
const TOS: [u8; 5] = [0, 2, 106, 106, 107];

fn op() -> impl Strategy<Value = Op> {
    let frame = (0u8..4, 0usize..TOS.len(), 0usize..2000);
    // Often of one queue, as real bursts are.
    let alike = (frame.clone(), 1usize..=BURST).prop_map(|(frame, count)| vec![frame; count]);
    let mixed = prop::collection::vec(frame, 1..8);
    let burst = prop_oneof![4 => alike, 1 => mixed].prop_map(|frames| {
        let with_tos = |(host, tos, payload): (u8, usize, usize)| (host, TOS[tos], payload);
        frames.into_iter().map(with_tos).collect()
    });
    prop_oneof![
        6 => (0u8..2, burst).prop_map(|(port, frames)| Op::Burst(port, frames)),
        1 => (0u8..8).prop_map(Op::Own),
        1 => prop_oneof![3 => Just(0u8), 1 => any::<u8>()].prop_map(Op::Hold),
        8 => (0u8..2, 0u64..40_000, prop_oneof![3 => Just(BURST), 1 => 1usize..BURST])
            .prop_map(|(port, after, room)| Op::Send(port, after, room)),
    ]
}

/// Sends as much as there is room for: which frames left, in their order.
fn send(path: &mut Path, port: PortId, room: usize, now: Nanos) -> Vec<(Vec<u8>, Meta)> {
    let mut out = Narrow(Outgoing::new(), room);
    path.egress(port, &mut out, now);
    let frames: Vec<_> = out
        .0
        .into_iter()
        .map(|frame| (frame.buf.data().to_vec(), frame.meta))
        .collect();
    let bytes = frames.iter().map(|(data, _)| data.len() as u64).sum();
    path.sent(port, frames.len() as u64, bytes);
    path.publish_held();
    frames
}

/// A hand that takes only so many.
struct Narrow(Outgoing<HeapFrame>, usize);

impl Outlet<HeapFrame> for Narrow {
    fn room(&self) -> usize {
        self.1 - self.0.len()
    }

    fn put(&mut self, frame: Queued<HeapFrame>) {
        assert!(self.room() > 0);
        self.0.push(frame);
    }
}

/// Everything an operator could tell the two apart by.
fn accounts(path: &Path) -> Vec<String> {
    let mut all = vec![format!("{:?} {:?}", path.buffer.used(), path.held)];
    for port in [DC, WAN] {
        all.push(format!("{:?} waiting {}", port, path.waiting(port)));
        all.push(format!("{:?}", path.counters().port(port.index())));
    }
    all
}

proptest! {
    #[test]
    fn a_burst_that_does_not_queue_leaves_as_one_that_does(
        ops in prop::collection::vec(op(), 1..60),
        pool in prop_oneof![Just(1u64 << 20), Just(60_000)],
    ) {
        let pool = PoolConfig { bytes: pool, frames: 400, alpha_256: 256 };
        let (mut short, mut long) = (path(pool), path(pool));
        let mut now = 0;
        for op in ops {
            match op {
                Op::Burst(from, frames) => {
                    for (path, queues) in [(&mut short, false), (&mut long, true)] {
                        let craft = |&(host, tos, payload): &(u8, u8, usize)| Craft {
                            dst_mac: super::mac(from),
                            tos,
                            payload: vec![0; payload],
                            ..data(HOSTS[usize::from(host)])
                        };
                        let mut burst = frames.iter().map(|frame| HeapFrame::new(&craft(frame).frame())).collect();
                        path.ingress(PortId(from), &mut burst, Nanos(now));
                        if queues {
                            path.queue_express();
                        }
                    }
                }
                Op::Own(priority) => {
                    for path in [&mut short, &mut long] {
                        let _ = path.originate(WAN, Priority::new(priority), HeapFrame::new(&[0; 74]), Nanos(now));
                    }
                }
                Op::Hold(queues) => {
                    short.hold_back(WAN, queues);
                    long.hold_back(WAN, queues);
                }
                Op::Send(port, after, room) => {
                    now += after;
                    let [a, b] = [&mut short, &mut long].map(|path| send(path, PortId(port), room, Nanos(now)));
                    prop_assert_eq!(a, b);
                }
            }
            prop_assert_eq!(accounts(&short), accounts(&long));
        }
        short.shut_down();
        long.shut_down();
        prop_assert_eq!(accounts(&short), accounts(&long));
    }
}

/// The law above would hold if every burst queued.
#[test]
fn a_burst_into_an_idle_port_does_not_queue() {
    let mut path = path(super::AMPLE);
    for (tos, now) in [(0, 1), (106, 1_000_000)] {
        let craft = Craft {
            tos,
            ..data("10.0.2.2")
        };
        let mut burst = (0..8).map(|_| HeapFrame::new(&craft.frame())).collect();
        path.ingress(DC, &mut burst, Nanos(now));
        assert_eq!((path.express.waiting(WAN), path.waiting(WAN)), (8, 8));
        assert_eq!(send(&mut path, WAN, BURST, Nanos(now)).len(), 8);
        assert!(path.express.is_empty());
    }
}
