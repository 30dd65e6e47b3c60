//! Fuzz target of requests at the management sockets: any text is a request or none, one that is comes back from its call, and what it
//! requests is taken or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_api::ends::EndRow;
use npcc_api::operations::OPERATIONS;
use npcc_api::peers::PeerName;
use npcc_api::peers::Suggestion;
use npcc_api::protocol::Request;
use npcc_appliance::manage::ends::calendar::Calendar;
use npcc_appliance::manage::ends::row;
use npcc_engine::control::pairs;
use npcc_pipeline::capture::Filter;
use serde::Deserialize as _;

fuzz_target!(|line: &[u8]| {
    let text = String::from_utf8_lossy(line);
    for one in OPERATIONS {
        let _ = one.parameters(&text).and_then(|input| one.request(input));
    }
    let Ok(request) = serde_json::from_slice::<Request>(line) else {
        return;
    };
    // A table that does not exist has no call.
    let Some(call) = request.call() else { return };
    let query = call.target.split_once('?').map_or("", |(_, query)| query);
    let input = match call.body {
        Some(body) => serde_json::from_slice(&body).unwrap(),
        None => call.operation.parameters(query).unwrap(),
    };
    let again = call.operation.request(input).unwrap();
    // Rows of peers are kept as JSON, in which a fraction may come back as its neighbour.
    let has_rows = matches!(request, Request::Suggest(_));
    assert!(has_rows || again == request, "{request:?}: {again:?}");
    let _ = request.name();
    match &request {
        Request::Rows { query, .. } => {
            let _ = (query.hosts(), query.filters().count());
        }
        Request::Capture(wanted) => drop(Filter::parse(&wanted.filter)),
        Request::AddPair(pair) => drop(pairs::pair_command(pair, false)),
        Request::DeletePair { src, dst, dest_qp } => {
            drop(pairs::delete_command(*src, *dst, *dest_qp))
        }
        Request::Suggest(all) => all.iter().for_each(rows),
        _ => {}
    }
});

/// Reads the rows that a peer suggests, as both kinds of peers.
fn rows(of_peer: &Suggestion) {
    let calendar = Calendar { scale: 1.0, epoch_us: 1_764_000_000_000_000, ..Calendar::default() };
    for row in &of_peer.rows {
        let Ok(row) = EndRow::deserialize(row) else {
            continue;
        };
        for name in [PeerName::Peer(String::new()), PeerName::Host(String::new())] {
            let _ = row::report(&row, &name, &calendar);
        }
    }
}
