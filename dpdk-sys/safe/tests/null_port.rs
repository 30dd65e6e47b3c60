//! net_null: bursts in and out of a real driver, its counters, and every buffer home at the end.

mod common;

use npcc_dpdk::{Burst, Phase, Port, PortConfig};

#[test]
fn bursts_pass_and_every_buffer_comes_home() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let mut port = Port::open_by_device(&eal, "net_null0,size=128").unwrap();
    assert_eq!((port.driver_name(), port.is_vdev()), ("net_null", true));
    port.configure(&PortConfig::default(), &pool).unwrap();
    port.set_mac([2, 0, 0, 0, 1, 1]).unwrap();
    assert_eq!(port.mac().unwrap(), [2, 0, 0, 0, 1, 1]);
    port.start().unwrap();
    assert!(port.link().unwrap().up);

    let mut rx = port.rx_queue(0).unwrap();
    let mut tx = port.tx_queue(0).unwrap();
    let mut burst = Burst::<32>::new();
    let (mut received, mut sent) = (0, 0);
    for _ in 0..100 {
        received += rx.rx(&mut burst);
        assert!(
            burst
                .iter()
                .all(|mbuf| mbuf.data().len() == 128 && mbuf.len() == 128)
        );
        sent += tx.tx(&mut burst);
        assert!(burst.is_empty());
    }
    assert_eq!((received, sent), (3200, 3200));
    let stats = port.stats().unwrap();
    assert_eq!(
        (stats.rx_packets, stats.tx_packets, stats.rx_no_mbuf),
        (3200, 3200, 0)
    );
    port.reset_stats().unwrap();
    assert_eq!(port.stats().unwrap().rx_packets, 0);

    // Buffers in a burst return to the pool when it is dropped; a full burst receives nothing.
    assert_eq!(rx.rx(&mut burst), 32);
    assert_eq!(rx.rx(&mut burst), 0);
    assert_eq!(pool.in_use(), 32);
    drop(burst);
    assert_eq!((pool.in_use(), pool.available()), (0, 255));

    assert_eq!(tx.is_full(0), None, "net_null cannot tell");
    assert_eq!((tx.descriptors(), tx.holds_at_least(0)), (1024, Some(true)));
    assert_eq!(tx.holds_at_least(1025), None);
    assert_eq!(tx.holds_at_least(1), None);

    drop((rx, tx));
    port.stop().unwrap();
    assert_eq!(port.phase(), Phase::Configured);
    drop(port);

    // The name is free again, and a pool that runs dry says so and takes nothing.
    let mut port = Port::open_by_device(&eal, "net_null0").unwrap();
    port.configure(&PortConfig::default(), &pool).unwrap();
    let mut all = Burst::<300>::new();
    pool.alloc_bulk(&mut all, 255).unwrap();
    assert!(pool.alloc_bulk(&mut all, 1).is_err());
    assert_eq!(all.len(), 255);
}
