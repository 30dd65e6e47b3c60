//! A queue has one user, and a port does not stop or close under it.

mod common;

use npcc_dpdk::{Burst, Direction, Phase, Port, PortConfig, PortError};

#[test]
fn a_queue_is_handed_out_once() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let mut port = Port::open_by_device(&eal, "net_null0").unwrap();
    let wrong = |error: PortError, at: Phase| {
        assert!(
            matches!(&error, PortError::WrongPhase { phase, .. } if *phase == at),
            "{error}"
        );
    };
    wrong(port.start().unwrap_err(), Phase::Open);
    let too_many = PortConfig {
        tx_queues: u16::MAX,
        ..PortConfig::default()
    };
    assert!(matches!(
        port.configure(&too_many, &pool),
        Err(PortError::TooManyQueues {
            direction: Direction::Tx,
            ..
        })
    ));
    port.configure(
        &PortConfig {
            rx_queues: 2,
            tx_queues: 1,
            ..PortConfig::default()
        },
        &pool,
    )
    .unwrap();
    wrong(port.rx_queue(0).unwrap_err(), Phase::Configured);
    wrong(port.stop().unwrap_err(), Phase::Configured);
    port.start().unwrap();
    wrong(
        port.configure(&PortConfig::default(), &pool).unwrap_err(),
        Phase::Started,
    );

    let mut first = port.rx_queue(0).unwrap();
    let _second = port.rx_queue(1).unwrap();
    let error = port.rx_queue(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device \"net_null0\": rx queue 0 is taken: a queue has one user, who must drop it first"
    );
    assert!(matches!(
        port.tx_queue(1),
        Err(PortError::NoSuchQueue {
            index: 1,
            count: 1,
            ..
        })
    ));
    assert!(matches!(
        port.stop(),
        Err(PortError::QueuesOut { rx: 2, tx: 0, .. })
    ));
    assert!(matches!(
        Port::open_by_device(&eal, "net_null0"),
        Err(PortError::AlreadyOpen { .. })
    ));

    // Dropped on another thread, it can be taken again.
    std::thread::spawn(move || {
        let mut burst = Burst::<8>::new();
        assert_eq!(first.rx(&mut burst), 8);
    })
    .join()
    .unwrap();
    let mut first = port.rx_queue(0).unwrap();

    // A queue outlives the `Port` and still works.
    drop(port);
    let mut burst = Burst::<8>::new();
    assert_eq!(first.rx(&mut burst), 8);
}
