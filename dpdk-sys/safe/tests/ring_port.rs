//! A ring port: order, content and ownership over a wire that fills up.

mod common;

use npcc_dpdk::{Burst, PortConfig, RingPort};

#[test]
fn nothing_is_lost_when_the_wire_is_full() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let RingPort {
        mut port,
        mut feed,
        mut drained,
    } = RingPort::new(&eal, "dc0", 40).unwrap();
    port.configure(&PortConfig::default(), &pool).unwrap();
    port.start().unwrap();
    let mut rx = port.rx_queue(0).unwrap();
    let mut tx = port.tx_queue(0).unwrap();

    // In: the ring takes 40 of 64, the rest stays at the front, in order.
    let mut offered = common::burst::<64>(&pool, 0, 64);
    assert_eq!(feed.send(&mut offered), 40);
    assert_eq!(common::tags(&offered), (40..64).collect::<Vec<_>>());
    assert_eq!(feed.waiting(), 40);

    let mut inside = Burst::<64>::new();
    assert_eq!(rx.rx(&mut inside), 40);
    assert_eq!(feed.send(&mut offered), 24);
    assert_eq!(rx.rx(&mut inside), 24);
    assert_eq!(rx.rx(&mut inside), 0);
    assert_eq!(common::tags(&inside), (0..64).collect::<Vec<_>>());

    // Out: the same on the other side.
    assert_eq!(tx.tx(&mut inside), 40);
    assert_eq!(common::tags(&inside), (40..64).collect::<Vec<_>>());
    assert_eq!(tx.tx(&mut inside), 0);
    let mut out = Burst::<64>::new();
    assert_eq!(drained.receive(&mut out), 40);
    assert_eq!(tx.tx(&mut inside), 24);
    assert_eq!(drained.receive(&mut out), 24);
    assert_eq!(common::tags(&out), (0..64).collect::<Vec<_>>());
    assert_eq!(pool.in_use(), 64);
    drop(out);
    assert_eq!(pool.in_use(), 0);

    // Frames left on the wire go home with it.
    feed.send(&mut common::burst::<8>(&pool, 0, 8));
    tx.tx(&mut common::burst::<8>(&pool, 8, 8));
    assert_eq!(pool.in_use(), 16);
    drop((port, rx, tx, feed, drained));
    assert_eq!((pool.in_use(), pool.available()), (0, 255));
}
