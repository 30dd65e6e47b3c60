//! CSV report: one header line, one line per run with everything that is counted, decimal points.

use crate::app::ApplicationOutcome;
use crate::scenario::Scenario;
use crate::sweep::Run;

const HEAD: &str = "scenario,seed,sender,start,qps,length_m,np,scheme,peak_bytes,mean_bytes,p99_bytes,drained_ns,utilisation,goodput,jain,\
pauses,paused_ns,cnps_switch,cnps_host,cnps_received,marked,dropped,repeated,groups,converged_ns,applications\n";

/// Returns the text of the CSV file (RFC 4180); `seeds[n]` are the runs of the n-th seed.
#[must_use]
pub fn csv(scenario: &Scenario, seeds: &[Vec<Run>]) -> String {
    let mut text = HEAD.to_owned();
    let runs = (scenario.seed..).zip(seeds);
    for (seed, run) in runs.flat_map(|(seed, runs)| runs.iter().map(move |run| (seed, run))) {
        let (case, outcome) = (&run.case, &run.outcome);
        let groups = outcome.groups.iter().map(|group| {
            let bursts =
                [500, 990, 1_000].map(|share| group.quantile(share).map_or(0, |time| time.0));
            let [half, most, all] = bursts;
            format!(
                "{}={:.3}Gbps p50={half} p99={most} max={all}",
                group.name, group.goodput
            )
        });
        let applications = outcome.applications.iter().map(application);
        let fields = [
            quoted(&scenario.name),
            seed.to_string(),
            case.sender.name().to_owned(),
            case.start.to_string(),
            case.qps.map(|qps| qps.to_string()).unwrap_or_default(),
            case.length
                .map(|length| format!("{}", length.millimetres() as f64 / 1_000.0))
                .unwrap_or_default(),
            case.np.name().to_owned(),
            case.scheme.to_string(),
            outcome.peak.to_string(),
            outcome.mean.to_string(),
            outcome.p99.to_string(),
            outcome
                .drained
                .map(|time| time.0.to_string())
                .unwrap_or_default(),
            format!("{:.6}", outcome.utilisation),
            format!("{:.6}", outcome.goodput),
            format!("{:.6}", outcome.jain),
            outcome.pauses.to_string(),
            outcome.paused.0.to_string(),
            outcome.cnps_switch.to_string(),
            outcome.cnps_host.to_string(),
            outcome.cnps_received.to_string(),
            outcome.marked.to_string(),
            outcome.dropped.to_string(),
            outcome.repeated.to_string(),
            quoted(&groups.collect::<Vec<_>>().join("; ")),
            outcome
                .converged
                .map(|time| time.0.to_string())
                .unwrap_or_default(),
            quoted(&applications.collect::<Vec<_>>().join("; ")),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// Returns the figures of an application: times in nanoseconds, bus bandwidth in GB/s.
fn application(of: &ApplicationOutcome) -> String {
    let [half, most, all] =
        [500, 990, 1_000].map(|share| of.quantile(share).map_or(0, |time| time.0));
    let oldest = of.unfinished.iter().max().map_or(0, |age| age.0);
    format!(
        "{} steps={} p50={half} p99={most} max={all} unfinished={oldest} roofline={} jct={:.4} busbw={:.4}",
        of.name,
        of.steps.len(),
        of.roofline.0,
        of.jct_ratio().unwrap_or(0.0),
        of.busbw().unwrap_or(0.0),
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
