//! Peers: other boxes and agents of hosts, by name, and what this box counts of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use npcc_api::ends::EndRow;
use npcc_api::peers::{MOST_ROWS, PeerName, PeerRow, PeerTable, Suggested, Suggestion};
use npcc_api::protocol::{ApiError, status};
use npcc_cnp::control::command::ControlCommand;
use npcc_pipeline::counters;
use npcc_pipeline::units::Nanos;
use npcc_roce::pair::foreign::view::Reports;
use npcc_roce::pair::foreign::{PeerId, RefusedEnd};
use serde::Deserialize;

use super::calendar::Calendar;
use super::row;
use crate::manage::errors::of_control;
use crate::manage::management::Management;
use crate::manage::view::View;

impl Management {
    /// Has the control core take what peers report; returns the outcome for each.
    ///
    /// # Errors
    /// Says what is wrong with the request, or that the control core does not listen. Rows that are wrong are counted, and the others taken; so
    /// are the rows of the peers before one that is wrong.
    pub fn suggest(&self, all: &[Suggestion]) -> Result<Vec<Suggested>, ApiError> {
        let rows: usize = all.iter().map(|of_peer| of_peer.rows.len()).sum();
        for (count, what) in [(rows, "rows"), (all.len(), "peers")] {
            if count > MOST_ROWS {
                let why = format!("{count} {what} at once");
                let hint = format!("send {MOST_ROWS} at most");
                return Err(ApiError::with_hint(status::PAYLOAD_TOO_LARGE, why, &hint));
            }
        }
        all.iter().map(|of_peer| self.take_rows(of_peer)).collect()
    }

    fn take_rows(&self, Suggestion { name, rows }: &Suggestion) -> Result<Suggested, ApiError> {
        let listed = name.listed();
        listed.map_err(|why| ApiError::new(status::BAD_REQUEST, why))?;
        if rows.is_empty() {
            return Ok(Suggested::default());
        }
        let peer = self.view.peers.number(name)?;
        let calendar = Calendar::of(self.view.clock);
        let mut refused = BTreeMap::new();
        let mut count = |reason: RefusedEnd, more: u64| {
            if more > 0 {
                *refused.entry(reason.name().to_owned()).or_default() += more;
            }
        };
        let mut reports = Vec::with_capacity(rows.len());
        for given in rows {
            let read = EndRow::deserialize(given).map_err(|_| RefusedEnd::Malformed);
            match read.and_then(|read| row::report(&read, name, &calendar)) {
                Ok(report) => reports.push(report),
                Err(reason) => count(reason, 1),
            }
        }
        let reports = Arc::new(Reports::new(peer, reports.into()));
        let taken = self.npcc.send_reports_and_wait(&reports);
        taken.map_err(|error| of_control(&error))?;
        for (reason, counter) in RefusedEnd::ALL.into_iter().zip(&reports.refused) {
            count(reason, counter.get());
        }
        Ok(Suggested {
            accepted: reports.accepted.get(),
            refused,
        })
    }

    /// Has the control core forget all that a peer said and believe nothing of it, or believe it again.
    ///
    /// # Errors
    /// Says what is wrong with the name, or that the control core does not listen.
    pub fn trust(&self, name: &PeerName, trusted: bool) -> Result<(), ApiError> {
        let peer = self.view.peers.own_number(name);
        let peer = peer.map_err(|why| ApiError::new(status::NOT_FOUND, why))?;
        let command = if trusted {
            ControlCommand::Trust(peer)
        } else {
            ControlCommand::Distrust(peer)
        };
        let given = self.npcc.send_and_wait(command);
        given.map_err(|error| of_control(&error))
    }
}

/// Returns the peers, and what this box counts of them.
pub(crate) fn shown(view: &View) -> PeerTable {
    let calendar = Calendar::of(view.clock);
    let ready = view.ready.shown();
    let names = view.peers.all().into_iter().zip(0u8..);
    let row = |(peer, id): (String, u8)| {
        let all = view.npcc.peers.of(PeerId(id));
        let heard = all.heard.get();
        PeerRow {
            peer,
            distrusted: all.distrusted.get() > 0,
            heard: (heard > 0).then(|| calendar.micros(Nanos(heard))),
            counts: counters::sum([all]),
        }
    };
    PeerTable {
        version: view.version.clone(),
        routes_ready: ready.routes.map(|at| calendar.micros(at)),
        pairs_ready: ready.pairs.map(|at| calendar.micros(at)),
        peers: names.map(row).collect(),
    }
}
