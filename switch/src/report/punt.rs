//! Punt and inject: what Linux was given and what not, class by class, what was made in its stead, and what it sent.

use npcc_pipeline::counters::PuntCount;
use npcc_pipeline::punt::{PuntClass, PuntRates};
use serde::{Deserialize, Serialize};

use crate::linux_io::stats::LinuxCount;

/// `show punt --json`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Punt {
    /// Whether Linux is integrated: else all is 0.
    pub integrated: bool,
    /// Classes of frames, best first; then questions for next hops and ICMP errors of our own.
    pub classes: Vec<Class>,
    /// What the workers counted.
    pub workers: PuntCount,
    /// What the housekeeping thread counted.
    pub host: LinuxCount,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Most a second, of each worker.
    pub rate: u32,
    /// Frames given to Linux; questions asked; errors made.
    pub punted: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dropped, as the class was past its rate.
    pub over_rate: u64,
    /// Dropped, as its queue was full.
    pub full: u64,
    /// Frames that Linux took.
    pub delivered: u64,
    /// Frames that Linux refused.
    pub refused: u64,
    /// Bytes that wait in its queues.
    pub waiting: u64,
    /// Bytes that its queue holds at most, of each worker.
    pub queue: u64,
}

impl Punt {
    /// Of what was counted.
    #[must_use]
    pub fn of(rates: Option<&PuntRates>, workers: PuntCount, host: LinuxCount) -> Punt {
        let rate = |of: fn(&PuntRates) -> u32| rates.map_or(0, of);
        let frames = PuntClass::ALL.into_iter().map(|class| {
            let (given, taken) = (class.pick(&workers.classes), class.pick(&host.classes));
            Class {
                name: class.name().to_owned(),
                rate: rates.map_or(0, |rates| *class.pick(&rates.classes)),
                punted: given.punted.packets,
                bytes: given.punted.bytes,
                over_rate: given.over_rate,
                full: given.full,
                delivered: taken.delivered,
                refused: taken.refused,
                waiting: taken.waiting,
                queue: class.room() as u64,
            }
        });
        let asks = Class {
            name: "unresolved".to_owned(),
            rate: rate(|rates| rates.asks),
            punted: workers.asked,
            over_rate: workers.ask_over_rate,
            full: workers.ask_full,
            ..Class::default()
        };
        let errors = Class {
            name: "icmp_errors".to_owned(),
            rate: rate(|rates| rates.icmp_errors),
            punted: workers.time_exceeded + workers.unreachable + workers.too_big,
            over_rate: workers.icmp_over_rate,
            ..Class::default()
        };
        Punt {
            integrated: rates.is_some(),
            classes: frames.chain([asks, errors]).collect(),
            workers,
            host,
        }
    }
}
