//! The profile and the explicit keys, merged: eight queues and two tables with nothing left out.

use crate::model::{Ecn, EcnChoice, Priority, Profile, Qos, Scheduler, Trust, Wred};
use crate::units::BitRate;

/// Share of a DWRR queue that the profile or the operator names.
const NAMED_WEIGHT: u8 = 50;
/// Share of the other DWRR queues: enough not to starve, too little to matter.
const OTHER_WEIGHT: u8 = 1;

/// Classification and queues of a port with nothing left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveQos {
    /// The profile it grew from.
    pub profile: Profile,
    /// Which field of a packet tells its priority.
    pub trust: Trust,
    /// Priority of whatever no table names.
    pub default_priority: u8,
    /// Priority of each DSCP.
    pub dscp: [u8; 64],
    /// Priority of each VLAN priority.
    pub pcp: [u8; 8],
    /// The eight queues.
    pub priorities: [PriorityPlan; 8],
}

/// One queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityPlan {
    /// Whether its frames may not be dropped for want of buffer.
    pub lossless: bool,
    /// How it shares the port.
    pub scheduler: Scheduler,
    /// Its share among the DWRR queues, 1 to 100; no meaning when strict.
    pub weight: u8,
    /// ECN marking, if any.
    pub ecn: Option<Ecn>,
    /// Early drop of frames that cannot be marked, if any.
    pub wred: Option<Wred>,
    /// Most it may send, if bounded.
    pub max_rate: Option<BitRate>,
    /// What it gets before strict queues and shares, if anything.
    pub min_rate: Option<BitRate>,
}

/// Part of its port that a strict queue gets where nothing is written: enough for control, and too little to starve the queues
/// below it, whose senders pause would stop.
const STRICT_SHARE: u64 = 10;

impl PriorityPlan {
    /// Whether it is for control frames: strict, and not lossless.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.scheduler == Scheduler::Strict && !self.lossless
    }

    /// Most it may send of a port of this rate: as written, or a tenth for a control queue.
    #[must_use]
    pub fn limit(&self, rate: Option<BitRate>) -> Option<BitRate> {
        let share = rate.filter(|_| self.is_control());
        self.max_rate
            .or_else(|| share.map(|rate| BitRate(rate.0 / STRICT_SHARE)))
    }

    /// What it drains at, at most: the rate of which the thresholds of ECN and of NPCC are times.
    #[must_use]
    pub fn drain(&self, rate: Option<BitRate>) -> Option<BitRate> {
        [rate, self.limit(rate)].into_iter().flatten().min()
    }
}

impl EffectiveQos {
    /// Bit n: priority n is lossless.
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
        let mut priorities: [PriorityPlan; 8] = std::array::from_fn(|n| base(qos.profile, n));
        for (n, own) in &qos.priorities {
            let plan = &mut priorities[n.index()];
            *plan = merge(*plan, own);
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

/// What the profile says of priority `n`.
fn base(profile: Profile, n: usize) -> PriorityPlan {
    PriorityPlan {
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

/// What is written goes before what the profile says.
fn merge(base: PriorityPlan, own: &Priority) -> PriorityPlan {
    let scheduler = own.scheduler.unwrap_or(base.scheduler);
    // A queue the operator names and gives no weight is meant to carry traffic.
    let named = scheduler == Scheduler::Dwrr && *own != Priority::default();
    let fallback = if named { NAMED_WEIGHT } else { base.weight };
    PriorityPlan {
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
        let qos = EffectiveQos::new(&Qos::default());
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
            let qos = EffectiveQos::new(&Qos {
                profile,
                ..Qos::default()
            });
            assert_eq!(qos.lossless_mask(), 0);
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
        let qos = EffectiveQos::new(&qos);
        assert_eq!((qos.dscp[0], qos.dscp[1], qos.dscp[26]), (3, 0, 3));
        assert_eq!(qos.priorities[3].weight, 30);
        assert!(qos.priorities[3].lossless && qos.priorities[3].ecn.is_none());
        assert_eq!(qos.priorities[7].scheduler, Scheduler::Strict);
        assert_eq!(qos.priorities[4].weight, 50);
        assert_eq!(qos.lossless_mask(), 0b1_1000);
    }
}
