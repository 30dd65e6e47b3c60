//! Check of a running switch: devices that took no frames although frames waited.

use crate::finding::{Check, Diagnosis, Finding, Mend, Severity};

/// Port of the running switch, and the stalls of its device among the latest events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    /// Name of the port.
    pub port: String,
    /// Time for which the device took no frame, in ms.
    pub ms: u64,
}

impl Diagnosis {
    /// Adds the findings about a running switch.
    #[must_use]
    pub fn with_running(self, stalled: &[Stalled]) -> Diagnosis {
        let finding = |stalled: &Stalled| Finding {
            check: Check::TransmitStalled,
            severity: Severity::Warning,
            place: format!("port {}", stalled.port),
            what: format!(
                "the device took no frame for {} ms in all, by the latest events, with frames waiting, the link up, and no PFC: frames are \
                 late or lost (a peer that pauses the whole link by 802.3x has that effect, too)",
                stalled.ms
            ),
            mend: Mend::ByHand("npcc-switch show log; dmesg".to_owned()),
        };
        let mut findings = self.findings;
        findings.extend(stalled.iter().filter(|one| one.ms > 0).map(finding));
        Diagnosis::of(findings, self.configured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_took_no_frames_is_a_finding() {
        let of = |ms| Stalled {
            port: format!("p{ms}"),
            ms,
        };
        let found = Diagnosis::of(Vec::new(), true).with_running(&[of(0), of(30)]);
        assert_eq!((found.warnings, found.is_well()), (1, false));
        assert_eq!(found.findings[0].place, "port p30");
        assert!(found.findings[0].what.contains("no frame for 30 ms"));
    }
}
