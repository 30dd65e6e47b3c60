//! Answers of the drivers, one table: what each says of its card, and the line of DPDK 22.11.11's source that says so.
//!
//! `profiles/` has a file for each driver. A row has a value, or in `either` the two values that hardware or firmware may choose between
//! where DPDK's source does not say, and the quoted lines. `scripts/card-sources` compares the quotes with a tree of DPDK.

use serde::Deserialize;

use crate::answers::{
    Check, Dcb, Floor, Frees, Honors, Limits, LinkDown, Moment, Mtu, Need, Outcome, Oversize,
    PauseSettings, PortDefaults, Received, Rss, RxOffload, Scatter, Sent, TxOffload,
};
use crate::ring::{Reports, Status, TxProfile};

/// Answer of a driver, with its source.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row<T> {
    value: Option<T>,
    #[serde(default = "Vec::new")]
    either: Vec<T>,
    /// Quoted lines, each as `FILE:LINE: TEXT`.
    #[serde(default)]
    source: String,
    /// Text that no file of a folder has, each as `FOLDER: TEXT`, or a file, or a block of it, as `FILE(FIRST LINE): TEXT`: an operation
    /// that the driver lacks.
    #[serde(default)]
    absent: String,
}

impl<T> Row<T> {
    /// The answer; where there are two, the first.
    ///
    /// # Panics
    /// The row has none: [`Profile::all`] does not return such a profile.
    #[must_use]
    #[expect(clippy::expect_used, reason = "each row is looked at when it is read")]
    pub fn get(&self) -> &T {
        self.value
            .as_ref()
            .or_else(|| self.either.first())
            .expect("an answer")
    }

    /// The second answer, where DPDK's source leaves two.
    #[must_use]
    pub fn other(&self) -> Option<&T> {
        self.either.get(1)
    }

    /// Reason why the row is incomplete.
    fn fault(&self) -> Option<&'static str> {
        match (&self.value, self.either.len()) {
            (Some(_), 0) | (None, 2) => {}
            _ => return Some("has neither a value nor two of which one holds"),
        }
        if self.source.is_empty() && self.absent.is_empty() {
            return Some("has no source");
        }
        let quoted = |line: &str| {
            let mut parts = line.splitn(3, ':');
            let file = parts.next().is_some_and(|file| file.contains('/'));
            let number = parts.next().is_some_and(|line| line.parse::<u32>().is_ok());
            file && number && parts.next().is_some_and(|text| !text.trim().is_empty())
        };
        if !self.source.lines().all(quoted) {
            return Some("has a source that is not FILE:LINE: TEXT");
        }
        let absent = |line: &str| {
            line.split_once(": ")
                .is_some_and(|(folder, _)| folder.contains('/'))
        };
        (!self.absent.lines().all(absent)).then_some("has an absent text that is not FOLDER: TEXT")
    }

    fn swap(&mut self) {
        if let [first, second] = &mut self.either[..] {
            std::mem::swap(first, second);
        }
    }
}

/// Declares the rows of a profile.
macro_rules! rows {
    ($($(#[$doc:meta])+ $row:ident: $type:ty,)+) => {
        /// Answers of one driver.
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Profile {
            /// Name of the profile: that of its file.
            #[serde(skip)]
            pub name: &'static str,
            $($(#[$doc])+ pub $row: Row<$type>,)+
        }

        impl Profile {
            /// Rows of which DPDK's source leaves two answers.
            #[must_use]
            pub fn open(&self) -> Vec<&'static str> {
                let mut open = Vec::new();
                $(if self.$row.other().is_some() { open.push(stringify!($row)); })+
                open
            }

            /// The profile with the second answer, in place of the first, of the named rows that have two.
            #[must_use]
            pub fn with_other(mut self, rows: &[&str]) -> Profile {
                $(if rows.contains(&stringify!($row)) { self.$row.swap(); })+
                self
            }

            /// Rows, each with its quoted lines and its absent texts.
            #[must_use]
            pub fn sources(&self) -> Vec<(&'static str, &str, &str)> {
                vec![$((stringify!($row), &*self.$row.source, &*self.$row.absent),)+]
            }

            fn faults(&self) -> Vec<String> {
                let mut faults = Vec::new();
                $(if let Some(fault) = self.$row.fault() {
                    faults.push(format!("{}: {} {fault}", self.name, stringify!($row)));
                })+
                faults
            }
        }
    };
}

rows! {
    /// `dev_info.driver_name`.
    driver: String,
    /// A kernel driver keeps an interface beside DPDK's port: `dev_info.if_index` is not 0.
    kernel_interface: bool,
    /// Things without which the probe fails, with its error.
    probe_needs: Vec<Need>,

    /// `dev_info.min_mtu`.
    min_mtu: u16,
    /// `dev_info.max_mtu`.
    max_mtu: u16,
    /// `dev_info.max_rx_pktlen`, in bytes.
    max_rx_pktlen: u32,
    /// `dev_info.min_rx_bufsize`, in bytes.
    min_rx_bufsize: u32,
    /// `dev_info.max_rx_queues`.
    max_rx_queues: u16,
    /// `dev_info.max_tx_queues`.
    max_tx_queues: u16,
    /// Offloads at receive that the product knows of.
    rx_offloads: Vec<RxOffload>,
    /// Offloads at transmit that the product knows of.
    tx_offloads: Vec<TxOffload>,
    /// Kinds of frames that RSS hashes, of those in `RTE_ETH_RSS_IP` and `RTE_ETH_RSS_UDP`.
    rss: Vec<Rss>,
    /// `dev_info.rx_desc_lim`.
    rx_desc: Limits,
    /// `dev_info.tx_desc_lim`.
    tx_desc: Limits,
    /// `dev_info.default_rxportconf`.
    rx_port: PortDefaults,
    /// `dev_info.default_txportconf`.
    tx_port: PortDefaults,
    /// `dev_info.default_rxconf.rx_drop_en`.
    rx_drop_en: bool,
    /// `dev_info.default_txconf.tx_rs_thresh`.
    tx_rs_thresh: u16,
    /// `dev_info.default_txconf.tx_free_thresh`.
    tx_free_thresh: u16,

    /// Style of `tx_descriptor_status`.
    tx_status: Status,
    /// Requests for reports of sent frames, with the default configuration.
    tx_reports: Reports,
    /// Free descriptors below which a burst frees sent buffers; 65,535: every burst does.
    tx_free_below: u16,
    /// Buffers that a burst frees.
    tx_frees: Frees,
    /// Descriptors that are never filled.
    tx_unused: u16,

    /// `rx_descriptor_status` is there.
    rx_status: bool,
    /// Multiple to which the card's receive buffers are cut.
    rx_buffer: Floor,
    /// Comparison by which scattered receive is chosen although nobody requested it.
    scatter: Scatter,
    /// Frames that are longer than a buffer while scattered receive is not chosen.
    oversize: Oversize,
    /// Moment at which the card takes over an MTU.
    mtu: Mtu,

    /// `flow_ctrl_get`.
    flow_ctrl_get: Outcome,
    /// Contents of `flow_ctrl_get` after the first start, but for its mode; 0 where the driver writes nothing.
    flow_ctrl_reports: PauseSettings,
    /// `flow_ctrl_set`, if no check refuses.
    flow_ctrl_set: Outcome,
    /// `priority_flow_ctrl_set`, if no check refuses.
    priority_flow_ctrl_set: Outcome,
    /// Checks of `flow_ctrl_set` and `priority_flow_ctrl_set`.
    pause_checks: Vec<Check>,
    /// `priority_flow_ctrl_queue_info_get`.
    priority_flow_ctrl_queue_info_get: Outcome,
    /// `get_dcb_info`.
    get_dcb_info: Outcome,
    /// Contents of `get_dcb_info` where transmit alone is configured for DCB with eight classes.
    dcb: Dcb,
    /// Received frame with Ethertype 0x8808.
    pause_received: Received,
    /// Frame with Ethertype 0x8808 that software sends.
    pause_sent: Sent,
    /// The MAC honors a peer's 802.3x pause.
    honors_link_pause: Honors,
    /// The MAC honors a peer's PFC.
    honors_pfc: Honors,

    /// Calls during which the link goes down, as the peer sees it.
    flaps: Vec<Moment>,
    /// `dev_set_link_down`.
    set_link_down: LinkDown,
}

impl Profile {
    /// Transmit side, for the model of a ring.
    #[must_use]
    pub fn tx(&self) -> TxProfile {
        TxProfile {
            status: *self.tx_status.get(),
            reports: *self.tx_reports.get(),
            free_below: *self.tx_free_below.get(),
            unused: *self.tx_unused.get(),
            frees: *self.tx_frees.get(),
        }
    }

    /// Profile with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Profile> {
        Profile::all()
            .into_iter()
            .find(|profile| profile.name == name)
    }

    /// Every profile.
    ///
    /// # Panics
    /// A file of `profiles/` is not what this module declares.
    #[must_use]
    #[expect(clippy::panic, reason = "the table is part of the program")]
    pub fn all() -> Vec<Profile> {
        let read = |(name, text): &(&'static str, &str)| {
            let mut profile: Profile =
                serde_yaml::from_str(text).unwrap_or_else(|e| panic!("profiles/{name}.yaml: {e}"));
            profile.name = name;
            assert!(profile.faults().is_empty(), "{:#?}", profile.faults());
            profile
        };
        FILES.iter().map(read).collect()
    }
}

macro_rules! files {
    ($($name:literal)+) => {
        /// Files of the table.
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../profiles/", $name, ".yaml"))),)+];
    };
}

files! { "bnxt" "e1000e" "ena" "hns3" "i40e" "iavf" "ice" "igb" "ixgbe" "ixgbe_vf" "mlx5" "virtio" "vmxnet3" }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_complete_and_has_the_name_of_its_file() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let profiles = Profile::all();
        let names: Vec<String> = profiles
            .iter()
            .map(|p| format!("{}.yaml", p.name))
            .collect();
        assert_eq!(names, files);
        for profile in &profiles {
            assert!(profile.rx_desc.get().max > 0, "{}", profile.name);
            let (low, high) = (*profile.min_mtu.get(), *profile.max_mtu.get());
            assert!(low < high, "{}: MTU {low} to {high}", profile.name);
            let dcb = profile.dcb.get();
            assert_eq!(
                dcb.tx_queues.len(),
                usize::from(dcb.classes),
                "{}",
                profile.name
            );
        }
    }

    #[test]
    fn the_second_answer_replaces_the_first_in_the_rows_that_are_named() {
        let ice = Profile::named("ice").unwrap();
        assert!(ice.open().contains(&"pause_received"), "{:?}", ice.open());
        assert_eq!(*ice.pause_received.get(), Received::Consumed);
        let other = ice.with_other(&["pause_received", "mtu"]);
        assert_eq!(*other.pause_received.get(), Received::Passed);
        assert_eq!(*other.mtu.get(), Mtu::Start);
    }

    #[test]
    fn a_row_without_an_answer_or_a_source_is_a_fault() {
        let fault = |text: &str| serde_yaml::from_str::<Row<u16>>(text).unwrap().fault();
        let source = "source: 'drivers/net/a.c:1: x'";
        assert_eq!(fault(&format!("value: 1\n{source}")), None);
        assert_eq!(fault(&format!("either: [1, 2]\n{source}")), None);
        for text in [
            source.to_string(),
            format!("either: [1]\n{source}"),
            "value: 1".to_string(),
        ] {
            assert!(fault(&text).is_some(), "{text}");
        }
        assert!(fault("value: 1\nsource: 'drivers/net/a.c: x'").is_some());
    }
}
