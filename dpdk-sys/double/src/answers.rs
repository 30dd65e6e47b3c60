//! Answers of a driver in the form in which the C side reads them: `struct answers` and its kin in double.h.

use std::ffi::{CString, c_char};

use npcc_card::answers::{
    Field, Honors, Limits, LinkDown, Moment, Mtu, PortDefaults, Received, RxOffload, Sent,
    TxOffload,
};
use npcc_card::{Profile, Status};

/// `RTE_ETH_RX_OFFLOAD_SCATTER`.
const SCATTER: u64 = 1 << 13;
/// `RTE_ETH_TX_OFFLOAD_MULTI_SEGS`.
const MULTI_SEGS: u64 = 1 << 15;
/// `RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE`.
const FAST_FREE: u64 = 1 << 16;

/// Answers of a driver; as `struct answers`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Answers {
    /// `sizeof`, by which the C side sees that both sides mean the same.
    size: usize,
    driver: *const c_char,
    rx_offloads: u64,
    tx_offloads: u64,
    rss: u64,
    max_rx_pktlen: u32,
    min_rx_bufsize: u32,
    min_mtu: u16,
    max_mtu: u16,
    rx_queues: u16,
    tx_queues: u16,
    rx_desc: [u16; 3],
    tx_desc: [u16; 3],
    rx_port: [u16; 2],
    tx_port: [u16; 2],
    tx_rs_thresh: u16,
    tx_free_thresh: u16,
    water: [u16; 2],
    dcb_queues: [u16; 8],
    dcb_priorities: [u8; 8],
    dcb_classes: u8,
    mtu: u8,
    received: u8,
    sent: u8,
    honors_link: u8,
    honors_pfc: u8,
    flaps: u8,
    interface: bool,
    rx_status: bool,
    tx_status: bool,
    rx_drop_en: bool,
    peer_sees: bool,
    flow_ctrl_get: i32,
    flow_ctrl_set: i32,
    pfc_set: i32,
    pfc_queue_info: i32,
    dcb_info: i32,
    link_down: i32,
}

impl Answers {
    pub(crate) fn of(profile: &Profile) -> Answers {
        let offload = |on: bool, bit: u64| if on { bit } else { 0 };
        let (rx, tx) = (profile.rx_offloads.get(), profile.tx_offloads.get());
        let dcb = profile.dcb.get();
        let link_down = *profile.set_link_down.get();
        Answers {
            size: size_of::<Answers>(),
            driver: name(profile.driver.get()),
            rx_offloads: offload(rx.contains(&RxOffload::Scatter), SCATTER),
            tx_offloads: offload(tx.contains(&TxOffload::MultiSegs), MULTI_SEGS)
                | offload(tx.contains(&TxOffload::MbufFastFree), FAST_FREE),
            rss: profile.rss.get().iter().map(|kind| kind.bit()).sum(),
            max_rx_pktlen: *profile.max_rx_pktlen.get(),
            min_rx_bufsize: *profile.min_rx_bufsize.get(),
            min_mtu: *profile.min_mtu.get(),
            max_mtu: *profile.max_mtu.get(),
            rx_queues: *profile.max_rx_queues.get(),
            tx_queues: *profile.max_tx_queues.get(),
            rx_desc: limits(*profile.rx_desc.get()),
            tx_desc: limits(*profile.tx_desc.get()),
            rx_port: defaults(*profile.rx_port.get()),
            tx_port: defaults(*profile.tx_port.get()),
            tx_rs_thresh: *profile.tx_rs_thresh.get(),
            tx_free_thresh: *profile.tx_free_thresh.get(),
            water: water(profile),
            dcb_queues: first_eight(&dcb.tx_queues),
            dcb_priorities: first_eight(&dcb.priorities),
            dcb_classes: dcb.classes,
            mtu: match *profile.mtu.get() {
                Mtu::Configure => 0,
                Mtu::Start => 1,
                Mtu::Set => 2,
            },
            received: match *profile.pause_received.get() {
                Received::Passed => 0,
                Received::PassedIfSet => 1,
                Received::Consumed => 2,
            },
            sent: match *profile.pause_sent.get() {
                Sent::Passed => 0,
                Sent::Filtered => 1,
            },
            honors_link: honors(*profile.honors_link_pause.get()),
            honors_pfc: honors(*profile.honors_pfc.get()),
            flaps: profile
                .flaps
                .get()
                .iter()
                .fold(0, |all, moment| all | 1 << place(*moment)),
            interface: *profile.kernel_interface.get(),
            rx_status: *profile.rx_status.get(),
            tx_status: *profile.tx_status.get() != Status::Absent,
            rx_drop_en: *profile.rx_drop_en.get(),
            peer_sees: link_down == LinkDown::PeerSees,
            flow_ctrl_get: profile.flow_ctrl_get.get().code(),
            flow_ctrl_set: profile.flow_ctrl_set.get().code(),
            pfc_set: profile.priority_flow_ctrl_set.get().code(),
            pfc_queue_info: profile.priority_flow_ctrl_queue_info_get.get().code(),
            dcb_info: profile.get_dcb_info.get().code(),
            link_down: match link_down {
                LinkDown::Refused(outcome) => outcome.code(),
                LinkDown::PeerSees | LinkDown::PeerUnaware => 0,
            },
        }
    }
}

/// Number of a call, as `enum moment`.
pub(crate) fn place(moment: Moment) -> u8 {
    match moment {
        Moment::Configure => 0,
        Moment::Start => 1,
        Moment::Stop => 2,
        Moment::MtuSet => 3,
        Moment::FlowCtrlSet => 4,
        Moment::PriorityFlowCtrlSet => 5,
    }
}

fn honors(honors: Honors) -> u8 {
    match honors {
        Honors::Never => 0,
        Honors::Always => 1,
        Honors::UntilCleared => 2,
        Honors::IfSet => 3,
    }
}

fn limits(limits: Limits) -> [u16; 3] {
    [limits.min, limits.max, limits.align]
}

fn defaults(defaults: PortDefaults) -> [u16; 2] {
    [defaults.ring, defaults.burst]
}

/// Watermarks that `flow_ctrl_get` reports, high and low: none where `flow_ctrl_set` wants none.
fn water(profile: &Profile) -> [u16; 2] {
    let none = |check: &npcc_card::answers::Check| check.field == Field::HighWater;
    if profile.pause_checks.get().iter().any(none) {
        [0, 0]
    } else {
        [0x5000, 0x4000]
    }
}

fn first_eight<T: Copy + Default>(values: &[T]) -> [T; 8] {
    let mut all = [T::default(); 8];
    all.iter_mut()
        .zip(values)
        .for_each(|(to, from)| *to = *from);
    all
}

/// A driver's name for as long as the process lives.
fn name(text: &str) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}
