//! Times at which we paused the senders behind a port: their flows' rates then are no response to a CNP.

use npcc_pipeline::units::{MAX_PORTS, Nanos, PRIORITIES, PortId, Priority};

/// Time after which a measurement is over.
const LONGEST: Nanos = Nanos::from_millis(20);

/// Time at which senders were last paused, by port and priority.
#[derive(Debug)]
pub(super) struct Xoffs {
    at: Box<[[Nanos; PRIORITIES]; MAX_PORTS]>,
    latest: Option<Nanos>,
}

impl Xoffs {
    pub(super) fn new() -> Xoffs {
        Xoffs {
            at: Box::new([[Nanos::ZERO; PRIORITIES]; MAX_PORTS]),
            latest: None,
        }
    }

    /// Records that the senders behind these ports are paused in this priority now.
    pub(super) fn note(&mut self, ports: u32, priority: Priority, now: Nanos) {
        if ports == 0 {
            return;
        }
        self.latest = Some(now);
        for (port, all) in (0u8..).map(PortId).zip(self.at.iter_mut()) {
            if let Some(at) = all
                .get_mut(priority.index())
                .filter(|_| ports & port.bit() != 0)
            {
                *at = now;
            }
        }
    }

    /// Returns true if any senders were paused so lately that it matters.
    #[inline]
    pub(super) fn matter(&self, now: Nanos) -> bool {
        self.latest.is_some_and(|at| now.since(at) < LONGEST)
    }

    /// Time at which the senders behind this port were last paused.
    pub(super) fn of(&self, port: PortId, priority: Priority) -> Nanos {
        let all = self.at.get(port.index());
        let at = all.and_then(|all| all.get(priority.index()));
        at.copied().unwrap_or(Nanos::ZERO)
    }
}
