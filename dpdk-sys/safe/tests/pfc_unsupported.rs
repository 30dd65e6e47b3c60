//! Pause by the device where no driver supports it: every call returns a typed error, and the port keeps working.

mod common;

use npcc_dpdk::{Operation, Phase, Port, PortConfig, PortError};

#[test]
fn software_drivers_lack_pause_and_say_so() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let mut port = Port::open_by_device(&eal, "net_null0").unwrap();
    let early = port.pfc_queues().unwrap_err();
    assert!(
        matches!(
            early,
            PortError::WrongPhase {
                phase: Phase::Open,
                ..
            }
        ),
        "{early}"
    );
    port.configure(&PortConfig::default(), &pool).unwrap();
    let lacks = [
        (port.pfc_queues().map(|_| ()), Operation::ReadPfc),
        (port.honor_pfc(3, true), Operation::SetPfc),
        (port.honor_pfc_on_queue(3, 0), Operation::SetPfc),
        (port.class_queues().map(|_| ()), Operation::ReadClasses),
    ];
    for (result, wanted) in lacks {
        let error = result.unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert!(
            matches!(&error, PortError::Driver { operation, .. } if *operation == wanted),
            "{error}"
        );
    }
    port.start().unwrap();
    assert!(port.honor_pfc(3, true).unwrap_err().is_unsupported());
    let rx = port.rx_queue(0).unwrap();
    assert_eq!(rx.holds_more_than(0), None, "net_null cannot tell its fill");
}
