//! Checks of the TSC, the clock of all the switch's timing.

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// Folder in which the kernel shows its clock sources.
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

pub(crate) fn examine(host: &Host, found: &mut Vec<Finding>) {
    let current = host.read(format!("{CLOCKS}/current_clocksource"));
    let available = host.read(format!("{CLOCKS}/available_clocksource"));
    if let Some(current) = current.filter(|current| current != "tsc") {
        let offered = available
            .unwrap_or_default()
            .split(' ')
            .any(|one| one == "tsc");
        let mend = if offered {
            Mend::Now(format!("echo tsc > {CLOCKS}/current_clocksource"))
        } else {
            Mend::ByHand("dmesg | grep -i -e tsc -e clocksource".to_owned())
        };
        found.push(Finding {
            check: Check::ClockSource,
            severity: if offered {
                Severity::Note
            } else {
                Severity::Warning
            },
            place: format!("{CLOCKS}/current_clocksource"),
            what: format!(
                "the kernel keeps time by {current} and not by the TSC{}",
                if offered {
                    ""
                } else {
                    ", which it found unstable: the switch's times and rates go by it"
                }
            ),
            mend,
        });
    }
    let info = host.read("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags"));
    let Some(flags) = flags else { return };
    let lacks = |flag: &str| !flags.split_whitespace().any(|one| one == flag);
    if lacks("constant_tsc") || lacks("nonstop_tsc") {
        found.push(Finding {
            check: Check::TscInvariant,
            severity: Severity::Warning,
            place: "/proc/cpuinfo".to_owned(),
            what: "the processor does not say that its TSC is invariant: rates and times may drift with its clock; on a virtual machine the host has to pass the flag on".to_owned(),
            mend: Mend::ByHand("grep -m1 -o -w -e constant_tsc -e nonstop_tsc /proc/cpuinfo".to_owned()),
        });
    }
}
