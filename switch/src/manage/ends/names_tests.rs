use super::*;

fn number(names: &PeerNames, name: PeerName) -> Option<u8> {
    names.number(&name).ok().map(|peer| peer.0)
}

#[test]
fn a_peer_has_one_number_and_a_host_is_no_box() {
    let names = PeerNames::default();
    let (peer, host) = (
        PeerName::Peer("edge-2".to_owned()),
        PeerName::Host("edge-2".to_owned()),
    );
    assert_eq!(number(&names, peer.clone()), Some(0));
    assert_eq!(number(&names, host), Some(1));
    assert_eq!(number(&names, peer), Some(0));
    assert_eq!(names.all(), ["edge-2", "host:edge-2"]);
    for (listed, at) in names.all().iter().zip(0..) {
        assert_eq!(number(&names, PeerName::from(listed.as_str())), Some(at));
    }
}

#[test]
fn a_name_is_short_and_of_few_characters_and_there_are_only_so_many() {
    let names = PeerNames::default();
    let long = "a".repeat(33);
    for bad in ["", "Edge", "edge 2", "host:a", long.as_str()] {
        assert_eq!(
            number(&names, PeerName::Peer(bad.to_owned())),
            None,
            "{bad}"
        );
    }
    for n in 0..255 {
        assert!(number(&names, PeerName::Peer(format!("edge-{n}"))).is_some());
    }
    assert_eq!(number(&names, PeerName::Peer("one-more".to_owned())), None);
    assert_eq!(
        number(&names, PeerName::Peer("edge-254".to_owned())),
        Some(254)
    );
}

#[test]
fn agents_without_a_number_of_their_own_share_the_last() {
    let names = PeerNames::default();
    let host = |n: u32| PeerName::Host(format!("gpu-{n}"));
    for n in 0..255 {
        assert_eq!(number(&names, host(n)), u8::try_from(n).ok());
    }
    for n in 255..1_000 {
        assert_eq!(number(&names, host(n)), Some(255));
    }
    assert_eq!(number(&names, host(7)), Some(7));
    assert_eq!(number(&names, PeerName::Peer("edge-2".to_owned())), None);
    let others = names.all().pop().unwrap();
    assert_eq!(others, "host:other-agents");
    assert_eq!(number(&names, others.as_str().into()), Some(255));
}

#[test]
fn requests_are_as_agreed() {
    use crate::manage::protocol::Request;
    let read = |text: &str| serde_json::from_str::<Request>(text).unwrap();
    assert_eq!(read(r#"{"ends":{}}"#), Request::Ends { follow: false });
    let name = PeerName::Peer("edge-2".to_owned());
    assert_eq!(
        read(r#"{"distrust":{"peer":"edge-2"}}"#),
        Request::Distrust(name.clone())
    );
    let rows = vec![serde_json::json!({"kind": "begin"})];
    let suggest = Request::Suggest { name, rows };
    let text = r#"{"suggest":{"peer":"edge-2","rows":[{"kind":"begin"}]}}"#;
    assert_eq!(read(text), suggest);
    assert_eq!(serde_json::to_string(&suggest).unwrap(), text);
    assert!(!suggest.reads() && Request::Ends { follow: true }.reads());
}

/// Lines of a feed and to a feed.
#[test]
fn requests_of_a_feed_are_understood_and_replies_are_as_it_reads_them() {
    use crate::manage::ends::peers::Suggested;
    use crate::manage::ends::row::{Calendar, EndRow};
    use crate::manage::protocol::{Reply, Request};
    let requests = include_str!("../../../../tests/protocol/requests.jsonl");
    let mut rows_of = Vec::new();
    for line in requests.lines() {
        match serde_json::from_str(line).unwrap() {
            Request::Ends { follow } => assert!(follow),
            Request::Suggest { name, rows } => {
                for row in &rows {
                    let row: EndRow = serde_json::from_value(row.clone()).unwrap();
                    assert!(row.report(name.speaker(), &Calendar::default()).is_ok());
                }
                rows_of.push((name.listed().unwrap(), rows.len()));
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = [("edge-2".to_owned(), 2), ("host:gpu-1".to_owned(), 2)];
    assert_eq!(rows_of, expected);
    let replies = [
        Reply::Suggested(Suggested {
            accepted: 2,
            refused: [("not-behind-port".to_owned(), 3)].into(),
        }),
        Reply::Error("1025 rows at once: send 1024 at most".to_owned()),
    ];
    let lines = replies.map(|reply| serde_json::to_string(&reply).unwrap() + "\n");
    let expected = include_str!("../../../../tests/protocol/replies.jsonl");
    assert_eq!(lines.concat(), expected);
}
