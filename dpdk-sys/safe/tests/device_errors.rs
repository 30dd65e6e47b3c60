//! Errors of a device that cannot be opened name the cause, the place and the remedy.

mod common;

use npcc_dpdk::{Port, RingError, RingPort};

#[test]
fn the_error_says_what_to_do() {
    let eal = common::eal();
    // A process that takes DPDK's log has DPDK's own reason in the error.
    npcc_dpdk::log_to(|_| {}).unwrap();
    for (device, parts) in [
        (
            "net_nosuch0",
            &[
                "no driver \"net_nosuch\" in",
                "apt-get install librte-net-nosuch",
            ][..],
        ),
        (
            "net_pcap0,rx_pcap=/nonexistent/in.pcap",
            &["rx_pcap=/nonexistent/in.pcap: no such file"],
        ),
        (
            "net_af_packet0,iface=nosuchif",
            &["no network interface \"nosuchif\"", "ip link"],
        ),
        ("0000:ff:1f.7", &["no PCI device at 0000:ff:1f.7", "lspci"]),
        ("eth0", &["neither a PCI address", "net_pcap0"]),
        (
            "net_null0,nonsense=1",
            &[
                "could not be attached",
                "DPDK: ",
                "EAL: ",
                "check its arguments",
            ],
        ),
    ] {
        let error = Port::open_by_device(&eal, device).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{device}: {error}");
        }
        assert!(error.contains(device), "{error} does not name {device}");
    }
    // A failure leaves nothing behind that would keep the name.
    drop(Port::open_by_device(&eal, "net_null0").unwrap());

    let _ring = RingPort::new(&eal, "twice", 8).unwrap();
    assert!(matches!(
        RingPort::new(&eal, "twice", 8),
        Err(RingError::Ring { .. })
    ));
}
