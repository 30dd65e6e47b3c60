//! `npcc-switch pair export`: the pairs that are known, in the form that `pair import` reads.

use std::path::Path;

use anyhow::Context;
use npcc_api::client::blocking as client;
use npcc_api::model::Flow;
use npcc_api::protocol::OTHER_ANSWER;
use npcc_api::query::Query;
use serde::Serialize;

use super::{Failure, say};

/// Evidence of what others reported.
const FOREIGN: &str = "foreign";

/// A pair, and beside it what speaks for it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    src: &'a str,
    dst: &'a str,
    dest_qp: u32,
    sender_qp: u32,
    evidence: &'a str,
    age_ms: u64,
    idle_ms: u64,
}

pub(super) fn run(socket: &Path, evidence: Option<&str>) -> Result<(), Failure> {
    let query = Query {
        evidence: evidence.map(str::to_owned),
        ..Query::default()
    };
    let mut text = String::new();
    client::ask_rows(socket, "flows", &query, |row| {
        let flow: Flow = serde_json::from_value(row).context(OTHER_ANSWER)?;
        // What others reported is no pair of this switch's own, unless it is asked for.
        let own = evidence.is_some() || flow.evidence != FOREIGN;
        if let Some(line) = line(&flow).filter(|_| own) {
            text += &(serde_json::to_string(&line)? + "\n");
        }
        Ok(())
    })?;
    say(&text)
}

fn line(flow: &Flow) -> Option<Line<'_>> {
    Some(Line {
        src: &flow.src,
        dst: &flow.dst,
        dest_qp: flow.dest_qp,
        sender_qp: flow.sender_qp?,
        evidence: &flow.evidence,
        age_ms: flow.age_ms,
        idle_ms: flow.idle_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_exported_once_its_sender_is_known() {
        let mut flow = Flow {
            src: "10.0.1.3".to_owned(),
            dst: "10.0.2.2".to_owned(),
            dest_qp: 17,
            evidence: "none".to_owned(),
            age_ms: 7,
            ..Flow::default()
        };
        assert!(line(&flow).is_none());
        (flow.sender_qp, flow.evidence) = (Some(24), "cm".to_owned());
        let text = serde_json::to_string(&line(&flow).unwrap()).unwrap();
        assert_eq!(
            text,
            r#"{"src":"10.0.1.3","dst":"10.0.2.2","dest_qp":17,"sender_qp":24,"evidence":"cm","age_ms":7,"idle_ms":0}"#
        );
    }
}
