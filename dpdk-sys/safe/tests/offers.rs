//! Capabilities of virtual devices: no preferred rings, and no return of buffers unread, so that no frame is
//! refused whatever pool it is of.

mod common;

use npcc_dpdk::{Descriptors, Mempool, MempoolConfig, Port, PortConfig, RingPort};

#[test]
fn virtual_devices_get_the_least_rings_and_send_what_is_of_any_pool() {
    let eal = common::eal();
    let (ours, other) = (common::pool(&eal, 2048), {
        let config = MempoolConfig {
            name: "other".to_owned(),
            mbufs: 63,
            cache: 0,
            frame_room: 2048,
            socket: None,
        };
        Mempool::new(&eal, &config).unwrap()
    });
    let ring = Descriptors::Preferred {
        least: 256,
        most: 2048,
    };
    let config = PortConfig {
        rx_descriptors: ring,
        tx_descriptors: ring,
        one_pool: true,
        ..PortConfig::default()
    };
    let RingPort { port, drained, .. } = RingPort::new(&eal, "offers", 64).unwrap();
    let null = Port::open_by_device(&eal, "net_null0").unwrap();
    for mut port in [port, null] {
        port.configure(&config, &ours).unwrap();
        port.start().unwrap();
        let mut tx = port.tx_queue(0).unwrap();
        assert_eq!(tx.descriptors(), 256, "{}", port.driver_name());
        let mut burst = common::burst::<16>(&ours, 0, 4);
        let mut foreign = common::burst::<16>(&other, 4, 4);
        while let Some(mbuf) = foreign.pop() {
            burst.push(mbuf).unwrap();
        }
        assert_eq!((tx.tx(&mut burst), tx.refused()), (8, 0));
    }
    drop(drained);
    assert_eq!((ours.in_use(), other.in_use()), (0, 0));
}
