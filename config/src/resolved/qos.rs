//! QoS profile and explicit keys, merged: eight queues and two maps with nothing left out.

use crate::model::{Ecn, EcnChoice, Priority, Profile, Qos, Scheduler, Trust, Wred};
use crate::units::BitRate;

/// DWRR weight of a queue that the profile or the operator names.
const NAMED_WEIGHT: u8 = 50;
/// DWRR weight of the other queues: enough not to starve, too little to matter.
const OTHER_WEIGHT: u8 = 1;

/// Classification and queues of a port with nothing left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedQos {
    /// Profile from which the settings are derived.
    pub profile: Profile,
    /// Trust mode: the packet field that determines the priority.
    pub trust: Trust,
    /// Priority of packets that no map classifies.
    pub default_priority: u8,
    /// DSCP to priority map.
    pub dscp: [u8; 64],
    /// VLAN PCP to priority map.
    pub pcp: [u8; 8],
    /// Settings of the eight queues.
    pub priorities: [ResolvedPriority; 8],
}

/// Settings of one queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedPriority {
    /// True if frames of this priority must not be dropped for lack of buffer.
    pub lossless: bool,
    /// Scheduling of the queue on its port.
    pub scheduler: Scheduler,
    /// DWRR weight, 1 to 100; ignored for strict queues.
    pub weight: u8,
    /// ECN marking, if any.
    pub ecn: Option<Ecn>,
    /// WRED curve for frames that are not ECN-capable, if any.
    pub wred: Option<Wred>,
    /// Maximum rate, if limited.
    pub max_rate: Option<BitRate>,
    /// Guaranteed minimum rate, served ahead of strict queues and DWRR shares, if any.
    pub min_rate: Option<BitRate>,
}

/// Divisor of the port's rate that gives a control queue's default maximum rate: a tenth is enough for control, and too little to starve
/// the queues below it, whose senders pause would stop.
const STRICT_SHARE: u64 = 10;

impl ResolvedPriority {
    /// Returns true for a control queue: strict, and not lossless.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.scheduler == Scheduler::Strict && !self.lossless
    }

    /// Returns the maximum rate on a port of this rate: as configured, or a tenth for a control queue.
    #[must_use]
    pub fn limit(&self, rate: Option<BitRate>) -> Option<BitRate> {
        let share = rate.filter(|_| self.is_control());
        self.max_rate
            .or_else(|| share.map(|rate| BitRate(rate.0 / STRICT_SHARE)))
    }

    /// Returns the maximum drain rate, to which ECN and NPCC thresholds given as times refer.
    #[must_use]
    pub fn drain(&self, rate: Option<BitRate>) -> Option<BitRate> {
        [rate, self.limit(rate)].into_iter().flatten().min()
    }
}

impl ResolvedQos {
    /// Lossless priorities; bit n: priority n.
    #[must_use]
    pub fn lossless_mask(&self) -> u8 {
        (0..8u8)
            .zip(&self.priorities)
            .filter(|(_, p)| p.lossless)
            .fold(0, |m, (n, _)| m | 1 << n)
    }

    /// Merges the profile and the explicit keys.
    #[must_use]
    pub fn new(qos: &Qos) -> Self {
        let default_priority = qos.default_priority.map_or(0, |p| p.byte());
        let mut dscp = [default_priority; 64];
        dscp[26] = 3;
        dscp[48] = 6;
        for (from, to) in &qos.dscp_to_priority {
            dscp[from.index()] = to.byte();
        }
        let mut pcp = [default_priority; 8];
        pcp[3] = 3;
        pcp[6] = 6;
        for (from, to) in &qos.pcp_to_priority {
            pcp[from.index()] = to.byte();
        }
        let mut priorities: [ResolvedPriority; 8] = std::array::from_fn(|n| base(qos.profile, n));
        for (n, own) in &qos.priorities {
            let resolved = &mut priorities[n.index()];
            *resolved = merge(*resolved, own);
        }
        Self {
            profile: qos.profile,
            trust: qos.trust.unwrap_or_default(),
            default_priority,
            dscp,
            pcp,
            priorities,
        }
    }
}

/// Returns the profile's settings for priority `n`.
fn base(profile: Profile, n: usize) -> ResolvedPriority {
    ResolvedPriority {
        lossless: n == 3 && profile == Profile::RoceLossless,
        scheduler: if n == 6 {
            Scheduler::Strict
        } else {
            Scheduler::Dwrr
        },
        weight: if n == 0 || n == 3 {
            NAMED_WEIGHT
        } else {
            OTHER_WEIGHT
        },
        ecn: (n == 3).then(Ecn::default),
        wred: None,
        max_rate: None,
        min_rate: None,
    }
}

/// Merges explicit settings with those of the profile; explicit ones take precedence.
fn merge(base: ResolvedPriority, own: &Priority) -> ResolvedPriority {
    let scheduler = own.scheduler.unwrap_or(base.scheduler);
    // A queue the operator names and gives no weight is meant to carry traffic.
    let named = scheduler == Scheduler::Dwrr && *own != Priority::default();
    let fallback = if named { NAMED_WEIGHT } else { base.weight };
    ResolvedPriority {
        lossless: own.lossless.unwrap_or(base.lossless),
        scheduler,
        weight: own.weight.map_or(fallback, |w| w.byte()),
        ecn: match own.ecn {
            None => base.ecn,
            Some(EcnChoice::Off) => None,
            Some(EcnChoice::On(ecn)) => Some(ecn),
        },
        wred: own.wred.or(base.wred),
        max_rate: own.max_rate.or(base.max_rate),
        min_rate: own.min_rate.or(base.min_rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Dscp, PriorityId};
    use crate::units::{Percent, Ranged, Threshold};

    #[test]
    fn one_word_sets_all() {
        let qos = ResolvedQos::new(&Qos::default());
        assert_eq!(
            (qos.dscp[26], qos.dscp[48], qos.dscp[0], qos.dscp[63]),
            (3, 6, 0, 0)
        );
        assert_eq!(qos.trust, Trust::Dscp);
        let three = qos.priorities[3];
        assert!(three.lossless);
        assert_eq!((three.scheduler, three.weight), (Scheduler::Dwrr, 50));
        let ecn = three.ecn.unwrap();
        assert_eq!(ecn.kmin, Threshold::from_micros(60));
        assert_eq!(ecn.kmax, Threshold::from_micros(480));
        assert_eq!(ecn.pmax, Percent::new(10).unwrap());
        assert_eq!(qos.priorities[6].scheduler, Scheduler::Strict);
        assert_eq!(qos.priorities[0].weight, 50);
        assert_eq!(qos.priorities[5].weight, 1);
        assert_eq!(qos.lossless_mask(), 0b1000);
    }

    #[test]
    fn lossy_profiles_keep_the_queues() {
        for profile in [Profile::Lossy, Profile::RoceSemiLossless] {
            let qos = ResolvedQos::new(&Qos {
                profile,
                ..Qos::default()
            });
            assert_eq!(qos.lossless_mask(), 0);
            let mut lossless = ResolvedQos::new(&Qos::default());
            lossless.priorities[3].lossless = false;
            assert_eq!(
                qos,
                ResolvedQos {
                    profile,
                    ..lossless
                },
                "nothing else changes"
            );
            assert!(qos.priorities[3].ecn.is_some());
        }
    }

    #[test]
    fn explicit_keys_go_first() {
        let mut qos = Qos::default();
        qos.dscp_to_priority
            .insert(Dscp::fixed(0), PriorityId::fixed(3));
        let own = Priority {
            ecn: Some(EcnChoice::Off),
            weight: Some(Ranged::fixed(30)),
            ..Priority::default()
        };
        qos.priorities.insert(PriorityId::fixed(3), own);
        let strict = Priority {
            scheduler: Some(Scheduler::Strict),
            ..Priority::default()
        };
        qos.priorities.insert(PriorityId::fixed(7), strict);
        let lossless = Priority {
            lossless: Some(true),
            ..Priority::default()
        };
        qos.priorities.insert(PriorityId::fixed(4), lossless);
        let qos = ResolvedQos::new(&qos);
        assert_eq!((qos.dscp[0], qos.dscp[1], qos.dscp[26]), (3, 0, 3));
        assert_eq!(qos.priorities[3].weight, 30);
        assert!(qos.priorities[3].lossless && qos.priorities[3].ecn.is_none());
        assert_eq!(qos.priorities[7].scheduler, Scheduler::Strict);
        assert_eq!(qos.priorities[4].weight, 50);
        assert_eq!(qos.lossless_mask(), 0b1_1000);
    }
}
