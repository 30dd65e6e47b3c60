//! Peers: other boxes and agents of hosts, by name, and what this box counts of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use npcc_api::ends::EndRow;
use npcc_api::peers::{MOST_ROWS, PeerName, PeerRow, PeerTable, Suggested, Suggestion};
use npcc_cnp::control::command::ControlCommand;
use npcc_cnp::pair::foreign::view::Reports;
use npcc_cnp::pair::foreign::{PeerId, RefusedEnd};
use npcc_pipeline::counters;
use npcc_pipeline::units::Nanos;
use serde::Deserialize;

use super::calendar::Calendar;
use super::row;
use crate::manage::management::Management;
use crate::manage::view::View;

impl Management {
    /// Has the control core take what a peer reports.
    ///
    /// # Errors
    /// Says what is wrong with the request, or that the control core does not listen. Rows that are wrong are counted, and the others taken.
    pub fn suggest(&self, of_peer: &Suggestion) -> Result<Suggested, String> {
        self.suggest_all(std::slice::from_ref(of_peer))
            .map(|mut all| all.pop().unwrap_or_default())
    }

    /// Has the control core take what peers report; returns the outcome for each.
    ///
    /// # Errors
    /// Fails like [`Management::suggest`]. The rows of the peers before the one that is wrong are taken.
    pub fn suggest_all(&self, all: &[Suggestion]) -> Result<Vec<Suggested>, String> {
        let rows: usize = all.iter().map(|of_peer| of_peer.rows.len()).sum();
        for (count, what) in [(rows, "rows"), (all.len(), "peers")] {
            if count > MOST_ROWS {
                return Err(format!("{count} {what} at once: send {MOST_ROWS} at most"));
            }
        }
        all.iter().map(|of_peer| self.take_rows(of_peer)).collect()
    }

    fn take_rows(&self, Suggestion { name, rows }: &Suggestion) -> Result<Suggested, String> {
        if rows.is_empty() {
            name.listed()?;
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
        taken.map_err(|error| error.to_string())?;
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
    pub fn trust(&self, name: &PeerName, trusted: bool) -> Result<(), String> {
        let peer = self.view.peers.own_number(name)?;
        let command = if trusted {
            ControlCommand::Trust(peer)
        } else {
            ControlCommand::Distrust(peer)
        };
        self.npcc
            .send_and_wait(command)
            .map_err(|error| error.to_string())
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
