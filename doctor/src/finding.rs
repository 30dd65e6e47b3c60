//! What was found, and how it is told to people and scripts.

use std::fmt;

use serde::Serialize;

npcc_config::named! {
    /// How bad a finding is.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// It should be known, and may be as wanted.
        Note = "note",
        /// The switch runs, and worse than it could.
        Warning = "warning",
        /// The switch does not start, or does not forward.
        Error = "error",
    }
}

npcc_config::named! {
    /// What was looked at.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Check {
        /// Enough hugepages are free for the packet memory.
        HugepagesFew = "hugepages-few",
        /// They lie on the NUMA nodes of the ports.
        HugepagesNode = "hugepages-node",
        /// A hugetlbfs is mounted.
        HugepagesUnmounted = "hugepages-unmounted",
        /// No file of a dead process keeps hugepages.
        HugepagesLeftover = "hugepages-leftover",
        /// The PCI device is there.
        DeviceMissing = "device-missing",
        /// It has a driver that DPDK can use.
        DriverBinding = "driver-binding",
        /// The IOMMU is on for vfio.
        IommuOff = "iommu-off",
        /// Vfio uses the IOMMU.
        IommuUnsafe = "iommu-unsafe",
        /// The device's IOMMU group is the switch's alone.
        IommuGroup = "iommu-group",
        /// A port's worker runs on the port's NUMA node.
        Numa = "numa",
        /// The card has all lanes it can use.
        PcieWidth = "pcie-width",
        /// The device can do priority pause as the port needs it.
        NicPause = "nic-pause",
        /// The device has a queue for each worker.
        NicQueues = "nic-queues",
        /// A configured core is online.
        CoreMissing = "core-missing",
        /// The kernel schedules nothing else on it.
        CoreNotIsolated = "core-not-isolated",
        /// The kernel's tick leaves it alone.
        CoreTick = "core-tick",
        /// Nobody else uses its other hardware thread.
        CoreSibling = "core-sibling",
        /// It runs at full speed.
        Governor = "governor",
        /// The kernel trusts the TSC.
        ClockSource = "clock-source",
        /// The TSC runs on at one rate.
        TscInvariant = "tsc-invariant",
        /// A port's kernel interface is there.
        InterfaceMissing = "interface-missing",
        /// It is up.
        InterfaceDown = "interface-down",
        /// It takes the port's frames.
        InterfaceMtu = "interface-mtu",
        /// It does not merge frames.
        InterfaceMerges = "interface-merges",
        /// It hands frames over one by one.
        InterfaceSegments = "interface-segments",
        /// 802.3x pause of the whole link is off.
        LinkPause = "link-pause",
        /// The kernel's DCB does what the port needs.
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
        /// No socket of a dead switch lies about.
        SocketLeftover = "socket-leftover",
        /// The sockets are for their groups.
        SocketRights = "socket-rights",
    }
}

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "when", content = "command")]
pub enum Mend {
    /// This command, at once and without harm to others.
    Now(String),
    /// This command, and a restart of the host.
    Reboot(String),
    /// Somebody has to decide; this command shows or does it.
    ByHand(String),
}

impl Mend {
    /// The command.
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

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// By which check.
    pub check: Check,
    /// How bad.
    pub severity: Severity,
    /// Where: a port, a core, a file.
    #[serde(rename = "where")]
    pub place: String,
    /// What is wrong and what comes of it.
    pub what: String,
    /// What mends it.
    pub mend: Mend,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// How many findings are errors.
    pub errors: usize,
    /// How many are warnings.
    pub warnings: usize,
    /// How many are notes.
    pub notes: usize,
    /// Whether there was a configuration to compare the host with.
    pub configured: bool,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Puts findings in order.
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

    /// Whether there is nothing to mend: notes do not count.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }

    /// Commands for a shell: what mends at once as it is, the rest behind `#`.
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
