//! Fuzz target of requests at the management sockets: any line is a request or none, one that is comes back from what is written of it,
//! and what it asks for is taken or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_appliance::manage::ends::calendar::Calendar;
use npcc_api::ends::EndRow;
use npcc_api::peers::PeerName;
use npcc_appliance::control::pairs;
use npcc_appliance::manage::ends::row;
use serde::Deserialize as _;
use npcc_api::peers::Suggestion;
use npcc_api::protocol::{Reply, Request};
use npcc_pipeline::capture::Filter;

fuzz_target!(|line: &[u8]| {
    if let Ok(reply) = serde_json::from_slice::<Reply>(line) {
        let _ = reply.unexpected();
    }
    let Ok(request) = serde_json::from_slice::<Request>(line) else { return };
    let written = serde_json::to_string(&request).unwrap();
    let again: Request = serde_json::from_str(&written).unwrap();
    // Rows of peers are kept as JSON, in which a fraction may come back as its neighbour.
    let has_rows = matches!(request, Request::Suggest(_) | Request::SuggestAll(_));
    assert!(has_rows || again == request, "{request:?}: {again:?}");
    assert!(!written.contains('\n'), "one line");
    let _ = (request.name(), request.reads());
    match &request {
        Request::Rows { query, .. } => {
            let _ = (query.hosts(), query.filters().count());
        }
        Request::Capture(wanted) => drop(Filter::parse(&wanted.filter)),
        Request::Npcc(pair) => drop(pairs::command(pair)),
        Request::Pairs { pairs: listed, suggested } => {
            for pair in listed {
                let _ = pairs::pair_command(pair, *suggested);
            }
        }
        Request::Suggest(of_peer) => rows(of_peer),
        Request::SuggestAll(all) => all.iter().for_each(rows),
        _ => {}
    }
});

/// Reads the rows that a peer suggests, as both kinds of peers.
fn rows(of_peer: &Suggestion) {
    let calendar = Calendar { scale: 1.0, epoch_us: 1_764_000_000_000_000, ..Calendar::default() };
    for row in &of_peer.rows {
        let Ok(row) = EndRow::deserialize(row) else { continue };
        for name in [PeerName::Peer(String::new()), PeerName::Host(String::new())] {
            let _ = row::report(&row, &name, &calendar);
        }
    }
}
