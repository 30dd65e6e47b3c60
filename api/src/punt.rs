//! Punt and inject: frames given to Linux and frames dropped, by class, ICMP errors made in its stead, and frames it sent.

use npcc_pipeline::counters::{LinuxCount, PuntCount};
use npcc_pipeline::punt::{PuntClass, PuntRates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Contents of `show punt --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Punt {
    /// True if Linux is integrated; otherwise all counts are 0.
    pub integrated: bool,
    /// Classes of frames, best first; then requests for next hops and ICMP errors made by the switch.
    pub classes: Vec<Class>,
    /// Counts of the workers.
    pub workers: PuntCount,
    /// Counts of the housekeeping thread.
    pub host: LinuxCount,
}

/// Counts of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Rate limit a second, of each worker.
    pub rate: u32,
    /// Frames given to Linux; requests made; errors made.
    pub punted: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Number dropped because the class exceeded its rate.
    pub over_rate: u64,
    /// Number dropped because the queue of the class was full.
    pub full: u64,
    /// Frames that Linux accepted.
    pub delivered: u64,
    /// Frames that Linux refused.
    pub refused: u64,
    /// Bytes that wait in the queues of the class.
    pub waiting: u64,
    /// Bytes that the queue of the class holds at most, for each worker.
    pub queue: u64,
}

impl Punt {
    /// Builds the report from the rates and the counts; without `rates`, Linux is not integrated.
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
