//! Fuzz target of leases: any answer of RDMA netlink gives queue pairs in range or none, any message of an agent gives leases of that host
//! or none and comes back from what is written of it, any line of the switch gives a row or none, and any state of a box has a line in
//! `fleet`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_api::ends::EndRow;
use npcc_feed::agent::{LeaseMessage, wire};
use npcc_feed::name::Name;

fuzz_target!(|bytes: &[u8]| {
    let host: Name = "h".parse().unwrap();
    if let Some(message) = LeaseMessage::decode(bytes, &host) {
        assert!(message.host == host && message.leases.len() <= 200);
        assert_eq!(LeaseMessage::decode(&message.encode(), &host), Some(message));
    }
    if let Ok(row) = serde_json::from_slice::<EndRow>(bytes) {
        let written = serde_json::to_vec(&row).unwrap();
        assert_eq!(serde_json::from_slice::<EndRow>(&written).unwrap(), row);
        let _ = row.is_shareable();
    }
    if let Ok(state) = serde_json::from_slice(bytes) {
        assert!(npcc_feed::fleet::table::text(&[state]).lines().count() >= 2);
    }
    let bodies: Vec<Vec<u8>> = wire::messages(bytes).map(|one| one.payload().to_vec()).collect();
    assert!(bodies.len() <= bytes.len() / 16);
    for body in bodies.iter().map(Vec::as_slice).chain([bytes]) {
        let _ = (wire::device(body), wire::interface(body), wire::cm_ids(body));
        let in_range = |number: u32| (2..1 << 24).contains(&number);
        let pairs = wire::queue_pairs(body);
        assert!(pairs.iter().all(|pair| in_range(pair.local) && in_range(pair.remote)));
    }
});
