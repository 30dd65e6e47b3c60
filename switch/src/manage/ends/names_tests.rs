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
    for n in 0..256 {
        assert!(number(&names, PeerName::Peer(format!("edge-{n}"))).is_some());
    }
    assert_eq!(number(&names, PeerName::Peer("one-more".to_owned())), None);
    assert_eq!(
        number(&names, PeerName::Peer("edge-255".to_owned())),
        Some(255)
    );
}

/// 255 agents once left no number to the other box of a pair.
#[test]
fn agents_leave_numbers_to_boxes_and_share_the_last_of_theirs() {
    let names = PeerNames::default();
    let host = |n: u32| PeerName::Host(format!("gpu-{n}"));
    for n in 0..223 {
        assert_eq!(number(&names, host(n)), u8::try_from(n).ok());
    }
    for n in 223..1_000 {
        assert_eq!(number(&names, host(n)), Some(223));
    }
    assert_eq!(number(&names, host(7)), Some(7));
    assert_eq!(names.all().last().unwrap(), OTHERS);
    assert_eq!(number(&names, OTHERS.into()), Some(223));
    for n in 0..BOXES {
        let number = number(&names, PeerName::Peer(format!("edge-{n}")));
        assert_eq!(number, u8::try_from(224 + n).ok());
    }
    assert_eq!(number(&names, PeerName::Peer("one-more".to_owned())), None);
    assert_eq!(number(&names, host(1_001)), Some(223));
}

/// `pair distrust` of one agent once distrusted all that share its number.
#[test]
fn trust_is_not_given_to_an_agent_without_a_number_of_its_own() {
    let names = PeerNames::default();
    let host = |n: u32| PeerName::Host(format!("gpu-{n}"));
    for n in 0..300 {
        assert!(names.number(&host(n)).is_ok());
    }
    assert_eq!(names.own_number(&host(7)), Ok(PeerId(7)));
    let why = names.own_number(&host(299)).unwrap_err();
    assert!(why.contains("`host:gpu-299` has no number of its own: name host:other-agents"));
    assert_eq!(names.own_number(&OTHERS.into()), Ok(PeerId(223)));
}

/// Rows of a feed are taken as it writes them.
#[test]
fn requests_of_a_feed_are_understood() {
    use crate::manage::ends::calendar::Calendar;
    use npcc_api::ends::EndRow;
    use npcc_api::peers::Suggestion;
    use npcc_api::protocol::Request;
    let requests = include_str!("../../../../tests/protocol/requests.jsonl");
    let mut suggestions = Vec::new();
    for line in requests.lines() {
        match serde_json::from_str(line).unwrap() {
            Request::Ends { follow } => assert!(follow),
            Request::Suggest(all) => suggestions.extend(all),
            other => panic!("{other:?}"),
        }
    }
    let rows_of = suggestions.iter().map(|Suggestion { name, rows }| {
        for row in rows {
            let row: EndRow = serde_json::from_value(row.clone()).unwrap();
            let report = crate::manage::ends::row::report(&row, name, &Calendar::default());
            assert!(report.is_ok());
        }
        (name.listed().unwrap(), rows.len())
    });
    let rows_of: Vec<_> = rows_of.collect();
    let expected = [("edge-2", 2), ("host:gpu-1", 2), ("host:gpu-2", 1)]
        .map(|(name, rows)| (name.to_owned(), rows));
    assert_eq!(rows_of, expected);
}

/// 256 made-up names once left no number to any box.
#[test]
fn a_name_that_nobody_used_takes_no_number() {
    let names = PeerNames::default();
    for n in 0..300 {
        let unknown = PeerName::Peer(format!("edge-{n}"));
        assert!(names.own_number(&unknown).is_err());
        assert!(
            names
                .own_number(&PeerName::Host(format!("gpu-{n}")))
                .is_err()
        );
    }
    assert_eq!(names.all(), Vec::<String>::new());
    let known = PeerName::Peer("edge-2".to_owned());
    assert_eq!(number(&names, known.clone()), Some(0));
    assert_eq!(names.own_number(&known), Ok(PeerId(0)));
}
