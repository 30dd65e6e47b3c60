//! Rows of a type of the caller's own: drivers fill them and take from them in place, and each buffer stays owned once.

mod common;

use std::cell::RefCell;

use arrayvec::ArrayVec;
use npcc_dpdk::{Burst, Mbuf, PortConfig, RingPort, free_all};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Number of places of the row.
const PLACES: usize = 12;
/// Number of frames that a wire holds.
const WIRE: usize = 8;

/// Operation on a row between two queues.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `.0` frames arrive, and at most `.1` are received.
    Receive(u16, usize),
    /// Up to `.0` frames are sent.
    Send(usize),
    /// Takes all frames off the wire, and sends up to `.0` of them again.
    Drain(u16),
    FreeAll,
}

#[derive(Debug)]
#[repr(transparent)]
struct Own(Mbuf);

impl From<Mbuf> for Own {
    fn from(mbuf: Mbuf) -> Own {
        Own(mbuf)
    }
}

impl From<Own> for Mbuf {
    fn from(own: Own) -> Mbuf {
        own.0
    }
}

fn tag(mbuf: &Mbuf) -> u16 {
    let data = mbuf.data();
    u16::from_be_bytes([data[14], data[15]])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u16..10, 0usize..14).prop_map(|(come, most)| Step::Receive(come, most)),
        4 => (0usize..14).prop_map(Step::Send),
        3 => (0u16..10).prop_map(Step::Drain),
        1 => Just(Step::FreeAll),
    ];
    proptest::collection::vec(step, 0..60)
}

#[test]
fn what_is_received_into_a_row_and_sent_from_it_is_owned_once_and_in_order() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let RingPort {
        mut port,
        feed,
        drained,
    } = RingPort::new(&eal, "dc0", u32::try_from(WIRE).unwrap()).unwrap();
    port.configure(&PortConfig::default(), &pool).unwrap();
    port.start().unwrap();
    let (rx, tx) = (port.rx_queue(0).unwrap(), port.tx_queue(0).unwrap());
    let wires = RefCell::new((rx, tx, feed, drained, 0u16));

    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&steps(), |steps| {
            let (rx, tx, feed, drained, next) = &mut *wires.borrow_mut();
            let mut row = ArrayVec::<Own, PLACES>::new();
            // Frames that wait before the row, are in it, and wait behind it.
            let (mut before, mut inside, mut behind): (Vec<u16>, Vec<u16>, Vec<u16>) =
                Default::default();
            let shift = |from: &mut Vec<u16>, to: &mut Vec<u16>, count: usize| {
                to.extend(from.drain(..count));
            };
            for step in steps {
                match step {
                    Step::Receive(come, most) => {
                        let mut offered = common::burst::<16>(&pool, *next, come);
                        before.extend((*next..*next + come).take(feed.send(&mut offered)));
                        *next = (*next + come) % 60_000;
                        let expected = before.len().min(most).min(PLACES - inside.len());
                        prop_assert_eq!(rx.rx_up_to(&mut row, most), expected);
                        shift(&mut before, &mut inside, expected);
                    }
                    Step::Send(most) => {
                        let expected = inside.len().min(most).min(WIRE - behind.len());
                        prop_assert_eq!(tx.tx_up_to(&mut row, most), expected);
                        shift(&mut inside, &mut behind, expected);
                    }
                    Step::Drain(most) => {
                        let mut out = Burst::<16>::new();
                        drained.receive(&mut out);
                        prop_assert_eq!(common::tags(&out), std::mem::take(&mut behind));
                        // Some go once more, behind nothing.
                        let mut again = Burst::<16>::new();
                        for mbuf in out.drain().take(usize::from(most)) {
                            behind.push(tag(&mbuf));
                            again.push(mbuf).unwrap();
                        }
                        prop_assert_eq!(tx.tx(&mut again), behind.len());
                    }
                    Step::FreeAll => {
                        prop_assert_eq!(free_all(&mut row), inside.len());
                        inside.clear();
                    }
                }
                let held: Vec<u16> = row.iter().map(|own| tag(&own.0)).collect();
                prop_assert_eq!(&held, &inside);
                let live = before.len() + inside.len() + behind.len();
                prop_assert_eq!(usize::try_from(pool.in_use()).unwrap(), live);
            }
            // The wires are empty again for the next case.
            drop(row);
            let mut rest = Burst::<16>::new();
            rx.rx(&mut rest);
            drained.receive(&mut rest);
            prop_assert_eq!(rest.len(), before.len() + behind.len());
            drop(rest);
            prop_assert_eq!(pool.in_use(), 0);
            Ok(())
        })
        .unwrap();
}
