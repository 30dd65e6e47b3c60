//! Flows, hosts and the log, row by row.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use npcc_api::model::{Flow, Host, LogDecision, LogLine};
use npcc_api::query::{End, Query};
use npcc_cnp::action::Action;
use npcc_cnp::admission::Suppressed;
use npcc_cnp::log::{Entry, KEPT, Outcome};
use npcc_cnp::response::Response;
use npcc_cnp::responsiveness::{Responsiveness, Unmeasured};
use npcc_cnp::table::FlowSnapshot;
use npcc_pipeline::units::{Nanos, PortId};
use npcc_roce::pair::Evidence;

use super::View;
use crate::manage::flow_rows::{self, Filter};
use crate::manage::rows::{Unanswered, page};
use crate::report::journal;
use npcc_engine::clock::Clock;

/// Most hosts for which flows are counted.
const HOSTS: usize = 65_536;

/// Adds a flow to the counts of its sender.
fn add(host: &mut Host, flow: &FlowSnapshot) {
    host.flows += 1;
    host.paired += u64::from(flow.evidence != Evidence::None);
    host.would_send += flow.would_send;
    match flow.response {
        Response::Halved => host.halved += 1,
        Response::Weak => host.weak += 1,
        Response::None => host.unresponsive += 1,
        Response::Unknown => {}
    }
}

impl View {
    fn port_named(&self, name: &str) -> Option<PortId> {
        let mut ports = self.ports.iter().zip(0u8..);
        ports.find_map(|(port, id)| (port.name == name).then_some(PortId(id)))
    }

    fn filter(&self, query: &Query) -> Result<Filter, Unanswered> {
        Filter::new(query, |name| self.port_named(name)).map_err(Unanswered::Refused)
    }

    /// Passes the flows that match the query to `give`.
    pub(in crate::manage) fn each_flow(
        &self,
        query: &Query,
        give: &mut dyn FnMut(&Flow) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let filter = self.filter(query)?;
        let now = self.clock.now();
        let end = flow_rows::each(&self.flows, &filter, |flow| give(&self.flow(flow, now)))?;
        Ok(end)
    }

    /// Returns the heaviest flows, at most `most` of them.
    pub(crate) fn heaviest(&self, most: usize) -> Vec<Flow> {
        let query = Query {
            top: Some(most),
            ..Query::default()
        };
        let mut flows = Vec::new();
        // A query without names is not refused, and no client can go away.
        let _ = self.each_flow(&query, &mut |flow| {
            flows.push(flow.clone());
            Ok(())
        });
        flows
    }

    fn flow(&self, flow: &FlowSnapshot, now: Nanos) -> Flow {
        let key = &flow.flow.key;
        Flow {
            src: key.src().to_string(),
            dst: key.dst().to_string(),
            dest_qp: key.dest_qp().get(),
            sender_qp: (flow.evidence != Evidence::None).then(|| flow.sender_qpn.get()),
            evidence: flow.evidence.name().to_owned(),
            port: self.port_name(flow.flow.egress),
            priority: flow.flow.priority.get(),
            bytes: flow.bytes,
            cnps: flow.cnps,
            response: (flow.response != Response::Unknown).then(|| flow.response.name().to_owned()),
            would_send: flow.would_send,
            refused: flow.refused.map(|reason| reason.name().to_owned()),
            cold: flow.cold,
            near_us: flow.near.0 / 1_000,
            far_us: flow.far.map(|far| far.0 / 1_000),
            gated: flow.gated,
            age_ms: now.since(flow.first_seen).0 / 1_000_000,
            idle_ms: now.since(flow.last_seen).0 / 1_000_000,
        }
    }

    /// Passes the hosts that match the query to `give`: those with CNPs, NAKs or CE, and those that send.
    pub(in crate::manage) fn each_host(
        &self,
        query: &Query,
        give: &mut dyn FnMut(&Host) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let filter = self.filter(query)?;
        let wanted = |host: &IpAddr| filter.wants_hosts(&[*host]);
        let mut hosts: HashMap<IpAddr, Host> = HashMap::new();
        for flow in self.flows.flows() {
            let host = flow.flow.key.src();
            if wanted(&host) && (hosts.len() < HOSTS || hosts.contains_key(&host)) {
                add(hosts.entry(host).or_default(), &flow);
            }
        }
        for verdict in self.npcc.verdicts.hosts() {
            if let Some(host) = hosts.get_mut(&verdict.address) {
                host.responsiveness = verdict.responsiveness.name().to_owned();
                (host.passed, host.failed) = (verdict.passed.into(), verdict.failed.into());
                let unmeasured = Unmeasured::ALL.iter().zip(verdict.unmeasured);
                host.unmeasured = unmeasured
                    .filter(|(_, count)| *count > 0)
                    .map(|(reason, count)| (reason.name().to_owned(), count.into()))
                    .collect();
            }
        }
        for (host, counts) in self.npcc.hosts.hosts().filter(|(host, _)| wanted(host)) {
            hosts.entry(host).or_default().counts = counts;
        }
        let mut all: Vec<(IpAddr, Host)> = hosts.into_iter().collect();
        all.sort_by_key(|(address, host)| (Reverse((host.cnps_sent, host.would_send)), *address));
        let row = |(address, host): &(IpAddr, Host)| self.host(*address, host);
        page(query, all.iter(), row, give)
    }

    fn host(&self, address: IpAddr, host: &Host) -> Host {
        let responsiveness = match host.responsiveness.as_str() {
            "" => Responsiveness::default().name(),
            known => known,
        };
        let rules = self.hosts();
        let action = match rules.admits(address) {
            false => "deny",
            true if rules.observe.holds(address) => {
                Action::Observe.min(self.npcc.action.get()).name()
            }
            true => self.npcc.action.get().name(),
        };
        Host {
            address: address.to_string(),
            action: action.to_owned(),
            responsiveness: responsiveness.to_owned(),
            ..host.clone()
        }
    }

    /// Passes the latest log lines to `give`, oldest first: CNPs and refusals with their reasons, events of ports and lossless queues, and
    /// changes with their authors.
    pub(in crate::manage) fn each_log_line(
        &self,
        query: &Query,
        give: &mut dyn FnMut(&LogLine) -> io::Result<()>,
    ) -> Result<End, Unanswered> {
        let filter = self.filter(query)?;
        if let Some(wrong) = query.outcome.as_ref().filter(|name| {
            let refused = Outcome::Refused(Suppressed::Cold);
            [Outcome::Sent, Outcome::WouldSend, refused]
                .iter()
                .all(|one| one.name() != name.as_str())
        }) {
            return Err(Unanswered::Refused(format!(
                "`{wrong}` is no outcome: write sent, would-send or refused"
            )));
        }
        let mut lines: Vec<(u64, Line)> = self.decisions(query, &filter);
        if query.filters().next().is_none() {
            self.watch();
            let journal = self.journal();
            let noted = journal.entries();
            lines.extend(noted.map(|entry| (entry.time_us(), Line::Noted(entry.clone()))));
        }
        lines.sort_by_key(|(time, _)| *time);
        let matched = lines.len();
        let before = matched.saturating_sub(query.top.unwrap_or(usize::MAX));
        let wall = Wall {
            now: SystemTime::now(),
            clock: &self.clock,
        };
        for (time_us, line) in lines.into_iter().skip(before) {
            give(&self.log_line(time_us, &wall, line))?;
        }
        Ok(End {
            matched: matched as u64,
            next: None,
        })
    }

    /// Returns the CNPs and refusals that match the query.
    fn decisions(&self, query: &Query, filter: &Filter) -> Vec<(u64, Line)> {
        let wanted = |entry: &Entry| {
            let outcome = query.outcome.as_ref();
            let sender = (entry.evidence != Evidence::None).then_some(entry.sender_qpn);
            outcome.is_none_or(|one| entry.outcome.name() == one)
                && filter.wants_evidence(entry.evidence)
                && filter.wants_flow(&entry.flow, sender)
        };
        let cnps = self.npcc.log.last(KEPT);
        let all = cnps.chain(self.npcc.refusals.last(KEPT)).filter(wanted);
        all.map(|entry| (entry.time.0 / 1_000, Line::Decision(entry)))
            .collect()
    }

    fn log_line(&self, time_us: u64, wall: &Wall<'_>, line: Line) -> LogLine {
        let line_of = |kind: &str, text| LogLine {
            time_us,
            wall: wall.of(time_us),
            kind: kind.to_owned(),
            text,
            ..LogLine::default()
        };
        match line {
            Line::Noted(journal::Entry::Event(event)) => LogLine {
                text: event.to_string(),
                port: Some(event.port).filter(|port| !port.is_empty()),
                priority: event.priority,
                ..line_of("event", String::new())
            },
            Line::Noted(journal::Entry::Change(change)) => {
                let text = change.to_string();
                LogLine {
                    wall: change.time,
                    ..line_of("change", text)
                }
            }
            Line::Decision(entry) => {
                let (port, wall) = (self.port_name(entry.flow.egress), wall.of(time_us));
                LogLine {
                    text: format!("{time_us} us: {wall} {}", entry.text(&port)),
                    port: Some(port),
                    priority: Some(entry.flow.priority.get()),
                    decision: Some(log_decision(&entry)),
                    ..line_of("decision", String::new())
                }
            }
        }
    }
}

/// Converts a decision to its JSON form.
fn log_decision(entry: &Entry) -> LogDecision {
    let key = &entry.flow.key;
    LogDecision {
        src: key.src().to_string(),
        dst: key.dst().to_string(),
        dest_qp: key.dest_qp().get(),
        sender_qp: (entry.evidence != Evidence::None).then(|| entry.sender_qpn.get()),
        evidence: entry.evidence.name().to_owned(),
        outcome: entry.outcome.name().to_owned(),
        refused: match entry.outcome {
            Outcome::Refused(reason) => Some(reason.name().to_owned()),
            Outcome::Sent | Outcome::WouldSend => None,
        },
        reason: entry.reason.name().to_owned(),
        depth: entry.depth,
        zone: entry.zone.name().to_owned(),
        trend: entry.trend.name().to_owned(),
        cnps: entry.cnps,
    }
}

/// Wall-clock time and the switch's clock, read together.
struct Wall<'a> {
    now: SystemTime,
    clock: &'a Clock,
}

impl Wall<'_> {
    /// Returns the wall-clock time of a time of the switch's clock, in us.
    fn of(&self, time_us: u64) -> String {
        let ago = self
            .clock
            .seconds_since(Nanos(time_us.saturating_mul(1_000)));
        let ago = Duration::try_from_secs_f64(ago).unwrap_or_default();
        let then = self.now.checked_sub(ago).unwrap_or(self.now);
        humantime::format_rfc3339_millis(then).to_string()
    }
}

/// Line of the log before it is text.
enum Line {
    Decision(Entry),
    Noted(journal::Entry),
}
