use super::*;
use crate::query::Query;

/// Requests of all kinds of input.
fn requests() -> Vec<Request> {
    let query = Query {
        top: Some(7),
        host: Some("10.0.1.0/24".to_owned()),
        qp: Some(17),
        cold: true,
        ..Query::default()
    };
    vec![
        Request::Ready,
        Request::Show {
            table: "ports".to_owned(),
        },
        Request::Rows {
            table: "flows".to_owned(),
            query: Box::new(query),
        },
        Request::ClearCounters { port: None },
        Request::ClearCounters {
            port: Some("a & b=c\n%".to_owned()),
        },
        Request::Set {
            key: "npcc.action".to_owned(),
            value: "off".to_owned(),
        },
        Request::Unset { key: None },
        Request::Reload {
            confirm_ms: Some(1_000),
        },
        Request::Ends { follow: true },
        Request::Suggest(Vec::new()),
        Request::EndCapture { id: 3 },
        Request::DeletePair {
            src: [10, 0, 1, 3].into(),
            dst: [10, 0, 2, 2].into(),
            dest_qp: 0x11,
        },
    ]
}

/// Law: a request is read as it was written, whatever its input is.
#[test]
fn a_request_comes_back_from_its_call() {
    for request in requests() {
        let call = request.call().unwrap();
        let query = call.target.split_once('?').map_or("", |(_, query)| query);
        let input = match call.operation.input {
            Input::Body => serde_json::from_slice(&call.body.unwrap()).unwrap(),
            Input::None | Input::Query => call.operation.parameters(query).unwrap(),
        };
        assert_eq!(
            call.operation.request(input),
            Ok(request),
            "{}",
            call.target
        );
    }
    let unknown = Request::Show {
        table: "marks".to_owned(),
    };
    assert!(unknown.call().is_none());
}

#[test]
fn every_operation_has_a_place_of_its_own_and_a_schema_of_its_input() {
    for (at, one) in OPERATIONS.iter().enumerate() {
        let is_same = |other: &Operation| (other.path, other.method) == (one.path, one.method);
        assert!(!OPERATIONS[..at].iter().any(is_same), "{}", one.path);
        let schema = one.input_schema();
        assert_eq!(schema.is_null(), one.input == Input::None, "{}", one.name);
        let is_reading = one.method == Method::Get;
        assert!(one.right == Right::Change || one.right == Right::Report || is_reading);
    }
}

#[test]
fn what_is_misspelt_or_given_twice_is_refused() {
    let flows = table("flows").unwrap();
    let read = |query: &str| {
        flows
            .parameters(query)
            .and_then(|input| flows.request(input))
    };
    assert!(read("top=5&host=10.0.1.0%2F24").is_ok());
    for (query, part) in [
        ("tpo=5", "there is no `tpo`: write "),
        ("top=5&top=6", "`top` is given twice"),
        ("top=many", "invalid type"),
        ("cold=1", "invalid type"),
        ("priority=256", "invalid value"),
    ] {
        let why = read(query).unwrap_err();
        assert!(why.contains(part), "{query}: {why}");
    }
    let set = OPERATIONS.iter().find(|one| one.name == "set").unwrap();
    let why = set.request(json!({ "key": "npcc.action" })).unwrap_err();
    assert!(why.contains("missing field `value`"), "{why}");
    assert!(set.needs_input() && !flows.needs_input());
}
