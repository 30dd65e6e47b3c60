use super::*;

fn info() -> dpdk_sys::rte_eth_dev_info {
    dpdk_sys::rte_eth_dev_info {
        max_rx_queues: 1,
        max_tx_queues: 4,
        min_mtu: 68,
        max_mtu: 9194,
        ..Default::default()
    }
}

#[test]
fn what_the_device_lacks_is_told_before_it_is_asked() {
    let good = PortConfig::default();
    assert_eq!(check("d", &good, &info(), 2048), Ok(()));
    let queues = PortConfig {
        rx_queues: 2,
        ..good
    };
    assert!(matches!(
        check("d", &queues, &info(), 2048),
        Err(PortError::TooManyQueues {
            direction: Direction::Rx,
            wanted: 2,
            max: 1,
            ..
        })
    ));
    let mtu = PortConfig { mtu: 9195, ..good };
    assert!(matches!(
        check("d", &mtu, &info(), 16384),
        Err(PortError::BadMtu { .. })
    ));
}

/// vmxnet3 takes 9,000 bytes at most before version 6, and the default is 9,100.
#[test]
fn a_limit_is_named_with_the_value_to_write() {
    let vmxnet3 = dpdk_sys::rte_eth_dev_info {
        max_mtu: 9_000,
        ..info()
    };
    let config = PortConfig {
        mtu: 9_100,
        ..PortConfig::default()
    };
    let error = check("0000:0b:00.0", &config, &vmxnet3, 9_344).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device \"0000:0b:00.0\" takes an MTU from 68 to 9000, not 9100: write mtu: 9000 on this port"
    );
    let small = PortConfig {
        mtu: 60,
        ..PortConfig::default()
    };
    let error = check("d", &small, &vmxnet3, 9_344).unwrap_err();
    assert!(error.to_string().ends_with("write mtu: 68 on this port"));
}

#[test]
fn a_written_ring_that_the_device_cannot_have_is_an_error_with_the_nearest() {
    let mut ice = info();
    (ice.rx_desc_lim.nb_min, ice.rx_desc_lim.nb_max) = (64, 4_096);
    ice.rx_desc_lim.nb_align = 32;
    let ring = |wanted, adjusted| check_ring("d", wanted, adjusted, &ice);
    assert_eq!(ring(Descriptors::Exactly(2_048), 2_048), Ok(()));
    let preferred = Descriptors::Preferred {
        least: 1_000,
        most: 8_192,
    };
    assert_eq!(ring(preferred, 4_096), Ok(()));
    let error = ring(Descriptors::Exactly(8_192), 4_096).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device \"d\" takes 64 to 4096 receive descriptors in steps of 32, not 8192: write rx_descriptors: 4096 on this port"
    );
}

#[test]
fn a_full_ring_of_ixgbe_drops_its_own_frames_where_there_are_several() {
    let mut offered = info();
    offered.default_rxconf.rx_free_thresh = 32;
    let conf = |driver, rx_queues| {
        let config = PortConfig {
            rx_queues,
            ..PortConfig::default()
        };
        rx_conf(driver, &config, &offered).map(|conf| (conf.rx_drop_en, conf.rx_free_thresh))
    };
    assert_eq!(conf("net_ixgbe", 2), Some((1, 32)));
    assert_eq!(conf("net_ixgbe", 1), None, "its only ring may fill");
    assert_eq!(conf("net_ice", 2), None);
}

/// ConnectX drops frames above the MTU of its kernel interface at the port.
#[test]
fn a_shared_interface_with_a_smaller_mtu_refuses_the_port() {
    // SAFETY: takes a number, and opens and closes its own socket.
    let (loopback, none) = unsafe {
        (
            dpdk_sys::npcc_interface_mtu(1),
            dpdk_sys::npcc_interface_mtu(u32::MAX >> 1),
        )
    };
    assert_eq!((loopback, none), (65_536, -dpdk_sys::ENODEV));
    assert_eq!(check_interface("d", 9_100, (1, loopback)), Ok(()));
    assert_eq!(check_interface("d", 9_100, (7, none)), Ok(()));
    assert_eq!(check_interface("d", 1_500, (7, 1_500)), Ok(()));
    let error = check_interface("0000:01:00.0", 9_100, (7, 1_500)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device \"0000:01:00.0\": the kernel's interface of this card (index 7) has an MTU of 1500, below 9100: ip link set dev \
         INTERFACE mtu 9100"
    );
}

#[test]
fn a_ring_is_as_the_device_prefers_within_limits() {
    let ring = Descriptors::Preferred {
        least: 1024,
        most: 2048,
    };
    let all = [0, 256, 1024, 1536, 2048, 4096].map(|preferred| ring.wanted(preferred));
    assert_eq!(all, [1024, 1024, 1024, 1536, 2048, 2048]);
    assert_eq!(Descriptors::Exactly(128).wanted(512), 128);
}

#[test]
fn buffers_return_unread_only_where_the_device_offers_it_and_one_pool_sends() {
    let offers = |one_pool, tx_offload_capa| {
        let info = dpdk_sys::rte_eth_dev_info {
            tx_offload_capa,
            ..info()
        };
        let config = PortConfig {
            one_pool,
            ..PortConfig::default()
        };
        device_conf("net_ice", &config, &info).txmode.offloads
    };
    let (fast, every) = (dpdk_sys::NPCC_TX_FAST_FREE, u64::MAX);
    assert_eq!(offers(true, every), fast, "and no other offload");
    assert_eq!(offers(false, every), 0);
    assert_eq!(offers(true, every & !fast), 0);
}

#[test]
fn a_frame_of_the_mtu_with_two_tags_fits_one_buffer_exactly() {
    let config = PortConfig {
        mtu: 9194,
        ..PortConfig::default()
    };
    assert_eq!(check("d", &config, &info(), 9216), Ok(()));
    assert!(matches!(
        check("d", &config, &info(), 9215),
        Err(PortError::BufferTooSmall {
            needed: 9216,
            room: 9215,
            ..
        })
    ));
}
