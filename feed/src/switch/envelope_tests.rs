use npcc_api::ends::{End, Key, Transport};
use serde_json::json;

use super::*;

/// Lines that the switch reads, and lines that it writes.
const REQUESTS: &str = include_str!("../../../tests/protocol/requests.jsonl");

fn name(text: &str) -> Name {
    serde_json::from_value(json!(text)).unwrap()
}

#[test]
fn requests_are_as_the_switch_reads_them() {
    let key = |queue_pair, udp_port| Key {
        from: [10, 0, 2, 2].into(),
        to: [10, 0, 1, 2].into(),
        queue_pair,
        udp_port,
    };
    let end = End {
        from: key(0, 0).from,
        to: key(0, 0).to,
        queue_pair: 4_711,
        udp_port: 49_152,
        transport: Transport::Rc,
        first_seen: 1,
        last_seen: 2,
        packets: 12,
        acked_psn: None,
        acked_at: None,
    };
    let lease = |queue_pair, from| Lease {
        to: [10, 0, 1, 2].into(),
        from,
        queue_pair,
        remote_queue_pair: queue_pair - 7,
        udp_port: None,
    };
    let ends = 1_800_000_003_000_000;
    let of = |host, rows| HostLeases {
        host: name(host),
        rows,
        expired: 0,
    };
    let known = (lease(24, Some([10, 0, 2, 2].into())), ends);
    let hosts = [
        of("gpu-1", vec![known, (lease(25, None), ends)]),
        of("gpu-2", vec![(lease(26, None), ends + 1)]),
    ];
    let rows = [EndRow::End(end), EndRow::Gone(key(4_712, 49_153))];
    let requests = [
        Request::Ends { follow: true },
        suggestion(&name("edge-2"), &rows),
        leases(&hosts),
    ];
    assert_eq!(REQUESTS.lines().count(), requests.len());
    for (line, request) in REQUESTS.lines().zip(&requests) {
        let expected: Value = serde_json::from_str(line).unwrap();
        let sent = serde_json::to_value(request).unwrap();
        assert_eq!(sent, expected);
    }
}
