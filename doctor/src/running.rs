//! Checks of a running switch: devices that took no frames although frames waited, and frames that a driver cut.

use crate::finding::{Check, Diagnosis, Finding, Mend, Severity};

/// Port of the running switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningPort {
    /// Name of the port.
    pub port: String,
    /// Time for which the device took no frame among the latest events, in ms.
    pub stalled_ms: u64,
    /// Frames whose end the ring of the driver cut off (drop reason `driver_truncated`).
    pub cut: u64,
}

impl RunningPort {
    fn stalled(&self) -> Finding {
        Finding {
            check: Check::TransmitStalled,
            severity: Severity::Warning,
            place: format!("port {}", self.port),
            what: format!(
                "the device took no frame for {} ms in all, by the latest events, with frames waiting, the link up, and no PFC: frames are \
                 late or lost (a peer that pauses the whole link by 802.3x has that effect, too)",
                self.stalled_ms
            ),
            mend: Mend::ByHand("npcc-switch show log; dmesg".to_owned()),
        }
    }

    fn cut(&self) -> Finding {
        Finding {
            check: Check::FramesCut,
            severity: Severity::Warning,
            place: format!("port {}", self.port),
            what: format!(
                "{} frames were longer than the port's MTU, and were cut by the ring of the driver: a host has a larger MTU, or sends IPv4 \
                 fragments, which the kernel reassembles before net_af_packet has them",
                self.cut
            ),
            mend: Mend::ByHand(
                "npcc-switch capture --filter \"reason driver_truncated\" -w cut.pcapng   # then: the same MTU on hosts and port".to_owned(),
            ),
        }
    }
}

impl Diagnosis {
    /// Adds the findings about a running switch.
    #[must_use]
    pub fn with_running(self, ports: &[RunningPort]) -> Diagnosis {
        let mut findings = self.findings;
        for port in ports {
            findings.extend((port.stalled_ms > 0).then(|| port.stalled()));
            findings.extend((port.cut > 0).then(|| port.cut()));
        }
        Diagnosis::of(findings, self.configured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_took_no_frames_is_a_finding() {
        let of = |stalled_ms| RunningPort {
            port: format!("p{stalled_ms}"),
            stalled_ms,
            cut: 0,
        };
        let found = Diagnosis::of(Vec::new(), true).with_running(&[of(0), of(30)]);
        assert_eq!((found.warnings, found.is_well()), (1, false));
        assert_eq!(found.findings[0].place, "port p30");
        assert!(found.findings[0].what.contains("no frame for 30 ms"));
    }

    #[test]
    fn frames_that_the_driver_cut_are_a_finding() {
        let port = RunningPort {
            port: "dc0".to_owned(),
            cut: 3,
            ..RunningPort::default()
        };
        let found = Diagnosis::of(Vec::new(), true).with_running(&[port]);
        assert_eq!(found.findings.len(), 1);
        assert!(found.findings[0].what.starts_with("3 frames"));
    }
}
