//! Selection of flows to show: read from the live table, with memory only for those requested.
//!
//! Law: however many flows there are, at most [`MOST`] of them are held at a time, each as two numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

use npcc_api::query::{End, Query};
use npcc_cnp::response::Response;
use npcc_cnp::table::{FlowSnapshot, FlowView};
use npcc_config::ipnet::IpNet;
use npcc_pipeline::named::Named;
use npcc_pipeline::units::PortId;
use npcc_roce::key::{Qpn, QueueFlow};
use npcc_roce::pair::Evidence;

/// Most flows that are sorted.
pub(super) const MOST: usize = 65_536;
/// Most rows of an unsorted answer: the client requests the next page.
const PAGE: usize = 100_000;

/// Query with its names resolved.
#[derive(Debug, Default)]
pub(super) struct Filter {
    query: Query,
    port: Option<PortId>,
    evidence: Option<Evidence>,
    response: Option<Response>,
    hosts: Option<IpNet>,
}

impl Filter {
    /// Resolves the names in a query; `port` finds a port.
    pub(super) fn new(
        query: &Query,
        port: impl Fn(&str) -> Option<PortId>,
    ) -> Result<Filter, String> {
        let find = |name: &String| {
            port(name).ok_or_else(|| format!("there is no port `{name}`; see show ports"))
        };
        let none = |name: &str, what, all: &[&str]| {
            format!("`{name}` is no {what}: write {}", all.join(", "))
        };
        let evidence = |name: &String| {
            Evidence::named(name).ok_or_else(|| none(name, "evidence", Evidence::NAMES))
        };
        let response = |name: &String| {
            Response::named(name).ok_or_else(|| none(name, "response", Response::NAMES))
        };
        Ok(Filter {
            port: query.port.as_ref().map(find).transpose()?,
            evidence: query.evidence.as_ref().map(evidence).transpose()?,
            hosts: query.hosts()?,
            response: query.response.as_ref().map(response).transpose()?,
            query: query.clone(),
        })
    }

    /// Returns true if one of these hosts matches the query.
    pub(super) fn wants_hosts(&self, hosts: &[IpAddr]) -> bool {
        self.hosts
            .is_none_or(|net| hosts.iter().any(|host| net.contains(host)))
    }

    /// Returns true if a flow with these queue pairs in this queue matches; the sender's is not always known.
    pub(super) fn wants_flow(&self, flow: &QueueFlow, sender: Option<Qpn>) -> bool {
        let key = &flow.key;
        let query = &self.query;
        query
            .qp
            .is_none_or(|qp| key.dest_qp().get() == qp || sender.map(Qpn::get) == Some(qp))
            && self.port.is_none_or(|port| flow.egress == port)
            && query
                .priority
                .is_none_or(|priority| flow.priority.get() == priority)
            && self.wants_hosts(&[key.src(), key.dst()])
    }

    /// Returns true if this evidence matches.
    pub(super) fn wants_evidence(&self, evidence: Evidence) -> bool {
        self.evidence.is_none_or(|one| evidence == one)
    }

    /// Returns true if a flow matches the query.
    fn wants(&self, flow: &FlowSnapshot) -> bool {
        let query = &self.query;
        let sender = (flow.evidence != Evidence::None).then_some(flow.sender_qpn);
        self.wants_evidence(flow.evidence)
            && self.response.is_none_or(|one| flow.response == one)
            && (!query.cold || flow.cold)
            && (!query.told || flow.cnps + flow.would_send > 0)
            && self.wants_flow(&flow.flow, sender)
    }
}

/// Passes the matching flows to `give`: the heaviest first if the query limits their number, else in table order.
pub(super) fn each<E>(
    flows: &FlowView,
    filter: &Filter,
    mut give: impl FnMut(&FlowSnapshot) -> Result<(), E>,
) -> Result<End, E> {
    let Some(top) = filter.query.top else {
        return in_place(flows, filter, give);
    };
    let page = filter.query.page.unwrap_or(1).max(1);
    let wanted = (0..flows.places()).filter_map(|place| {
        let flow = flows.at(place).filter(|flow| filter.wants(flow))?;
        Some((flow.bytes, place))
    });
    let (places, matched) = heaviest(wanted, top, page);
    for place in places {
        // Flows that left the table since are skipped.
        if let Some(flow) = flows.at(place).filter(|flow| filter.wants(flow)) {
            give(&flow)?;
        }
    }
    Ok(End {
        matched,
        next: None,
    })
}

/// Returns the table places of the heaviest flows on the requested page, and the number of flows that matched; `flows` are bytes and
/// places.
fn heaviest(
    flows: impl Iterator<Item = (u64, usize)>,
    top: usize,
    page: usize,
) -> (Vec<usize>, u64) {
    let most = top.saturating_mul(page).min(MOST);
    let mut kept = BinaryHeap::new();
    let mut matched = 0;
    for (bytes, place) in flows {
        matched += 1;
        kept.push(Reverse((bytes, Reverse(place))));
        if kept.len() > most {
            kept.pop();
        }
    }
    let places = kept.into_sorted_vec().into_iter();
    let places = places.map(|Reverse((_, Reverse(place)))| place);
    let places = places.skip(top.saturating_mul(page - 1)).take(top);
    (places.collect(), matched)
}

fn in_place<E>(
    flows: &FlowView,
    filter: &Filter,
    mut give: impl FnMut(&FlowSnapshot) -> Result<(), E>,
) -> Result<End, E> {
    let first = usize::try_from(filter.query.after.unwrap_or(0)).unwrap_or(usize::MAX);
    let mut matched = 0;
    for place in first..flows.places() {
        if matched == PAGE as u64 {
            return Ok(End {
                matched,
                next: Some(place as u64),
            });
        }
        if let Some(flow) = flows.at(place).filter(|flow| filter.wants(flow)) {
            matched += 1;
            give(&flow)?;
        }
    }
    Ok(End {
        matched,
        next: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_heaviest_in_order_and_no_more_than_is_held() {
        // Byte counts in another order than the places, some of them equal.
        let flows = || (0..1_000_000usize).map(|place| ((place as u64 * 7_919) % 500_009, place));
        let mut all: Vec<_> = flows().collect();
        all.sort_by_key(|(bytes, place)| (Reverse(*bytes), *place));
        let places: Vec<usize> = all.iter().map(|(_, place)| *place).collect();
        for (top, page) in [(1, 1), (10, 1), (10, 7), (1_000, 3)] {
            let (picked, matched) = heaviest(flows(), top, page);
            assert_eq!(matched, 1_000_000);
            assert_eq!(picked, places[top * (page - 1)..top * page], "{top} {page}");
        }
        assert_eq!(heaviest(flows(), usize::MAX, 1).0, places[..MOST]);
        assert!(heaviest(flows(), 0, 1).0.is_empty());
        assert!(heaviest(flows(), 10, usize::MAX).0.is_empty());
    }

    #[test]
    fn names_that_are_not_there_are_refused() {
        let ports = |name: &str| (name == "wan0").then_some(PortId(1));
        let tried = |query: Query| Filter::new(&query, ports).map(drop);
        let name = |name: &str| Some(name.to_owned());
        for (query, part) in [
            (
                Query {
                    port: name("lan9"),
                    ..Query::default()
                },
                "lan9",
            ),
            (
                Query {
                    evidence: name("guess"),
                    ..Query::default()
                },
                "port-hash",
            ),
            (
                Query {
                    response: name("fast"),
                    ..Query::default()
                },
                "halved",
            ),
            (
                Query {
                    host: name("10.0.0.0/33"),
                    ..Query::default()
                },
                "10.0.1.0/24",
            ),
        ] {
            let why = tried(query).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let good = Query {
            port: name("wan0"),
            evidence: name("none"),
            host: name("10.0.1.3"),
            ..Query::default()
        };
        assert_eq!(tried(good), Ok(()));
    }
}
