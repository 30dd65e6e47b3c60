//! The counts of the report that only grow and are no cells of [`counters!`](npcc_pipeline::counters!): NPCC's and the devices'.
//!
//! A map leaves out what never happened; here each of its names is shown, so that what another process counted can be added.

use std::collections::BTreeMap;

use npcc_cnp::detector::Zone;
use npcc_cnp::plan::Suppressed;
use npcc_cnp::policy::Reason;
use npcc_cnp::status::Row;
use npcc_cnp::uncounted::Uncounted as Why;
use npcc_pipeline::counters::Path;

use super::model::{Cm, Npcc, NpccQueue, Seen};

/// Takes a count, and which it is.
type Show<'a> = &'a mut dyn FnMut(Path, &mut u64);

/// Shows fields by their names.
macro_rules! fields {
    ($path:expr, $show:expr; $($field:expr => $name:literal),* $(,)?) => {
        $( $show($path.then($name), $field); )*
    };
}

impl Npcc {
    /// Shows each count, and which it is; `ports` are the names of all.
    pub fn each<'a>(&mut self, path: Path, ports: impl Iterator<Item = &'a str>, show: Show<'_>) {
        fields! { path, show;
            &mut self.samples => "samples", &mut self.sample_drops => "sample_drops",
            &mut self.cold_bytes => "cold_bytes", &mut self.health.data_bytes => "data_bytes",
            &mut self.cnps_sent => "cnps_sent", &mut self.would_send => "would_send",
            &mut self.ticks => "ticks", &mut self.ticks_late => "ticks_late", &mut self.ticks_early => "ticks_early",
            &mut self.queues_deferred => "queues_deferred",
            &mut self.flows_read => "flows_read", &mut self.flows_weighed => "flows_weighed",
            &mut self.flows_woken => "flows_woken", &mut self.wakes_lost => "wakes_lost",
            &mut self.cnps_passed => "cnps_passed", &mut self.cnps_damaged => "cnps_damaged",
            &mut self.flows_refused => "flows_refused", &mut self.untrusted => "untrusted",
            &mut self.wrong_port => "wrong_port",
        }
        let Cm {
            heard,
            damaged,
            foreign,
            contradicted,
        } = &mut self.cm;
        fields! { path.then("cm"), show;
            heard => "heard", damaged => "damaged", foreign => "foreign", contradicted => "contradicted",
        }
        let Seen {
            messages,
            message_drops,
            unsupported,
        } = &mut self.seen;
        fields! { path.then("seen"), show;
            messages => "messages", message_drops => "message_drops", unsupported => "unsupported",
        }
        let suppressed = Suppressed::ALL.iter().map(|one| one.name());
        named(
            &mut self.cnps_suppressed,
            suppressed,
            path.then("suppressed"),
            show,
        );
        named(
            &mut self.uncounted_ports,
            ports,
            path.then("uncounted_ports"),
            show,
        );
        for why in Why::ALL.map(Why::name) {
            let place = path.then("uncounted").then(why);
            let mut one = self.uncounted.get(why).copied().unwrap_or_default();
            fields! { place, show; &mut one.records => "records", &mut one.bytes => "bytes" }
            if one.records > 0 {
                self.uncounted.insert(why.to_owned(), one);
            }
        }
        for queue in &mut self.queues {
            queue.each(path.then("queue"), show);
        }
    }
}

impl NpccQueue {
    fn each(&mut self, path: Path, show: Show<'_>) {
        let path = path.then(&self.port).at(usize::from(self.priority));
        fields! { path, show;
            &mut self.cnps => "cnps", &mut self.would_send => "would_send",
            &mut self.policy_fallbacks => "policy_fallbacks",
        }
        let zones = Zone::ALL.iter().flat_map(|zone| {
            let rows = Row::ALL.iter();
            rows.map(|row| format!("{}-{}", zone.name(), row.name()))
        });
        let zones: Vec<String> = zones.collect();
        let zones = zones.iter().map(String::as_str);
        named(&mut self.decisions, zones, path.then("decisions"), show);
        let reasons = Reason::ALL.map(Reason::name).into_iter();
        named(&mut self.reasons, reasons, path.then("reasons"), show);
        let suppressed = Suppressed::ALL.iter().map(|one| one.name());
        named(
            &mut self.suppressed,
            suppressed,
            path.then("suppressed"),
            show,
        );
    }
}

/// Shows the count of each name; those that are not 0 then are in the map.
fn named<'a>(
    map: &mut BTreeMap<String, u64>,
    names: impl Iterator<Item = &'a str>,
    path: Path,
    show: Show<'_>,
) {
    for name in names {
        let mut count = map.get(name).copied().unwrap_or_default();
        show(path.then(name), &mut count);
        if count > 0 {
            map.insert(name.to_owned(), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every number of NPCC's report is shown, or is one that may go down.
    #[test]
    fn no_count_of_npcc_is_forgotten() {
        let mut npcc = Npcc {
            queues: vec![NpccQueue {
                port: "wan0".to_owned(),
                ..NpccQueue::default()
            }],
            ..Npcc::default()
        };
        let mut paths = BTreeSet::new();
        let mut shown = 0;
        npcc.each(
            Path::ROOT,
            ["dc0", "wan0"].into_iter(),
            &mut |path, count| {
                assert!(paths.insert(path), "two counts with one number");
                *count += 1;
                shown += 1;
            },
        );
        let value = serde_json::to_value(&npcc).unwrap();
        // What goes up and down, and what is a distribution of this process's.
        let gauges = [
            "/flows",
            "/reaction_us",
            "/reaction_hard_us",
            "/health/paired",
            "/health/unpaired",
            "/health/cold",
            "/queues/0/priority",
            "/queues/0/depth",
            "/queues/0/peak",
            "/queues/0/shallow",
            "/queues/0/deep",
            "/queues/0/hard",
            "/queues/0/contributors",
        ];
        let mut grown = 0;
        let mut left = vec![(String::new(), &value)];
        while let Some((at, value)) = left.pop() {
            if gauges.contains(&at.as_str()) {
                continue;
            }
            match value {
                serde_json::Value::Object(map) => {
                    left.extend(
                        map.iter()
                            .map(|(key, value)| (format!("{at}/{key}"), value)),
                    );
                }
                serde_json::Value::Array(all) => {
                    left.extend(
                        all.iter()
                            .enumerate()
                            .map(|(n, value)| (format!("{at}/{n}"), value)),
                    );
                }
                serde_json::Value::Number(number) => {
                    assert_eq!(number.as_u64(), Some(1), "{at} is not shown");
                    grown += 1;
                }
                _ => {}
            }
        }
        assert_eq!(grown, shown);
    }
}
