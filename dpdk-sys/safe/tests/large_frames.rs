//! The longest frames through a ring port, each in one buffer.

mod common;

use npcc_dpdk::{Burst, PortConfig, RingPort};

#[test]
fn frames_of_9216_bytes_keep_every_byte() {
    let eal = common::eal();
    let pool = common::pool(&eal, 9216);
    let RingPort {
        mut port,
        mut feed,
        mut drained,
    } = RingPort::new(&eal, "big", 64).unwrap();
    port.configure(
        &PortConfig {
            mtu: 9194,
            ..PortConfig::default()
        },
        &pool,
    )
    .unwrap();
    port.start().unwrap();
    let mut rx = port.rx_queue(0).unwrap();
    let mut tx = port.tx_queue(0).unwrap();

    let lengths = [60, 1500, 9000, 9215, 9216];
    let mut burst = Burst::<32>::new();
    for (tag, len) in (0..).zip(lengths) {
        burst
            .push(common::mbuf(&pool, &common::frame(tag, len)))
            .unwrap();
    }
    assert_eq!(feed.send(&mut burst), lengths.len());
    assert_eq!(rx.rx(&mut burst), lengths.len());
    assert_eq!(tx.tx(&mut burst), lengths.len());
    assert_eq!(drained.receive(&mut burst), lengths.len());
    assert_eq!(common::tags(&burst), [0, 1, 2, 3, 4]);
    assert_eq!(
        burst
            .iter()
            .map(|mbuf| mbuf.data().len())
            .collect::<Vec<_>>(),
        lengths
    );
    assert!(burst.iter().all(|mbuf| mbuf.segment_count() == 1));
}
