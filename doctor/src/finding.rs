//! Findings, and their output for people and scripts.

use std::fmt;

use serde::Serialize;

npcc_config::named! {
    /// Severity of a finding.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// Worth knowing, but possibly intended.
        Note = "note",
        /// Degraded: the switch runs, but worse than it could.
        Warning = "warning",
        /// Fatal: the switch does not start, or does not forward.
        Error = "error",
    }
}

npcc_config::named! {
    /// Check by its name; each variant states the condition that it requires.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Check {
        /// Enough hugepages are free for the packet memory.
        HugepagesFew = "hugepages-few",
        /// Hugepages are free on the NUMA nodes of the ports.
        HugepagesNode = "hugepages-node",
        /// A hugetlbfs is mounted.
        HugepagesUnmounted = "hugepages-unmounted",
        /// No file of a dead process keeps hugepages.
        HugepagesLeftover = "hugepages-leftover",
        /// The PCI device is there.
        DeviceMissing = "device-missing",
        /// The device has a driver that DPDK can use.
        DriverBinding = "driver-binding",
        /// DPDK's driver of a device is installed.
        DriverMissing = "driver-missing",
        /// The file that the driver loads into the card is installed.
        FirmwareMissing = "firmware-missing",
        /// The IOMMU is on for vfio.
        IommuOff = "iommu-off",
        /// The vfio driver uses the IOMMU.
        IommuUnsafe = "iommu-unsafe",
        /// The device's IOMMU group is the switch's alone.
        IommuGroup = "iommu-group",
        /// A port's worker runs on the port's NUMA node.
        Numa = "numa",
        /// The card has all lanes it can use.
        PcieWidth = "pcie-width",
        /// The device can do priority pause as the port needs it.
        NicPause = "nic-pause",
        /// The card leaves RoCE packets to DPDK.
        NicRoce = "nic-roce",
        /// The device has a queue for each worker.
        NicQueues = "nic-queues",
        /// A configured core is online.
        CoreMissing = "core-missing",
        /// The kernel schedules nothing else on a configured core.
        CoreNotIsolated = "core-not-isolated",
        /// The kernel's tick leaves a configured core alone (`nohz_full`).
        CoreTick = "core-tick",
        /// No other thread uses the core's other hardware thread.
        CoreSibling = "core-sibling",
        /// The core runs at full speed.
        Governor = "governor",
        /// The kernel trusts the TSC.
        ClockSource = "clock-source",
        /// The TSC runs at a constant rate.
        TscInvariant = "tsc-invariant",
        /// A port's kernel interface is there.
        InterfaceMissing = "interface-missing",
        /// The interface of a card that the kernel shares is in this network namespace.
        InterfaceNamespace = "interface-namespace",
        /// The interface is up.
        InterfaceDown = "interface-down",
        /// The interface's MTU admits the port's frames.
        InterfaceMtu = "interface-mtu",
        /// The interface does not merge frames (GRO, LRO).
        InterfaceMerges = "interface-merges",
        /// The interface passes frames on one by one (no TSO segments).
        InterfaceSegments = "interface-segments",
        /// The kernel does not answer on the interface with the port's addresses.
        InterfaceAnswers = "interface-answers",
        /// 802.3x pause of the whole link is off.
        LinkPause = "link-pause",
        /// The kernel's DCB configuration does what the port needs.
        DcbPfc = "dcb-pfc",
        /// No other interface has a port's MAC address.
        MacClash = "mac-clash",
        /// No other interface has a port's IP address.
        AddressClash = "address-clash",
        /// A port's interfaces in Linux have the port's MAC address.
        SviMac = "svi-mac",
        /// The sockets' groups exist.
        GroupMissing = "group-missing",
        /// The sockets' folder exists.
        SocketFolder = "socket-folder",
        /// The flight recorder lies beside the management socket, in memory.
        RecorderMemory = "recorder-memory",
        /// No socket of a dead switch is left.
        SocketLeftover = "socket-leftover",
        /// The sockets' permissions admit their groups.
        SocketRights = "socket-rights",
        /// A running switch's devices took the frames that waited for them.
        TransmitStalled = "transmit-stalled",
        /// A running switch's drivers cut no frames.
        FramesCut = "frames-cut",
    }
}

/// Remedy of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "when", content = "command")]
pub enum Mend {
    /// Command that may run at once, without harm to others.
    Now(String),
    /// Command that takes effect after a restart of the host.
    Reboot(String),
    /// Command for the operator to decide on; it shows or applies the remedy.
    ByHand(String),
}

impl Mend {
    /// Shell command of the remedy.
    #[must_use]
    pub fn command(&self) -> &str {
        let (Mend::Now(command) | Mend::Reboot(command) | Mend::ByHand(command)) = self;
        command
    }
}

impl fmt::Display for Mend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mend::Now(command) => write!(out, "mend: {command}"),
            Mend::Reboot(command) => write!(out, "mend, then restart the host: {command}"),
            Mend::ByHand(command) => write!(out, "by hand: {command}"),
        }
    }
}

/// Deviation from the expected state of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Check that found it.
    pub check: Check,
    /// Severity of the finding.
    pub severity: Severity,
    /// Place: a port, a core, a file.
    #[serde(rename = "where")]
    pub place: String,
    /// Description of the problem and its consequence.
    pub what: String,
    /// Remedy.
    pub mend: Mend,
}

/// Result of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Number of findings that are errors.
    pub errors: usize,
    /// Number of findings that are warnings.
    pub warnings: usize,
    /// Number of findings that are notes.
    pub notes: usize,
    /// True if there was a configuration to compare the host with.
    pub configured: bool,
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Sorts the findings, the worst first, and counts them.
    pub(crate) fn of(mut findings: Vec<Finding>, configured: bool) -> Diagnosis {
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.check));
        let count = |severity| {
            let mut number = 0;
            for finding in &findings {
                number += usize::from(finding.severity == severity);
            }
            number
        };
        Diagnosis {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            configured,
            findings,
        }
    }

    /// Returns true if there is nothing to fix: notes do not count.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }

    /// Returns a shell script: remedies that may run at once as commands, the others behind `#`.
    #[must_use]
    pub fn commands(&self) -> String {
        let line = |finding: &Finding| match &finding.mend {
            Mend::Now(command) => format!("{command}\n"),
            Mend::Reboot(command) => format!("# then restart the host: {command}\n"),
            Mend::ByHand(command) => format!("# by hand: {command}\n"),
        };
        let mut lines: Vec<String> = self.findings.iter().map(line).collect();
        lines.dedup();
        lines.concat()
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(
                out,
                "{:<8} {:<20} {}\n         {}\n         {}\n",
                finding.severity.name(),
                finding.check.name(),
                finding.place,
                finding.what,
                finding.mend
            )?;
        }
        if !self.configured {
            writeln!(
                out,
                "without a configuration only memory and clock were looked at: npcc-switch doctor FILE"
            )?;
        }
        let Diagnosis {
            errors,
            warnings,
            notes,
            ..
        } = self;
        writeln!(out, "{errors} errors, {warnings} warnings, {notes} notes")
    }
}
