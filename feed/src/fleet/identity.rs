//! Author of a record: the server lets each box publish under its own subjects only, so the subject decides, not the content.

use serde_json::{Value, json};

/// Most octets of a record that are read as JSON; longer ones are no box's.
const LONGEST: usize = 256 << 10;

/// Reads a record that was published under `npcc.SITE.BOX.KIND`. `None` if it is none, or says that it is another site's or box's.
pub(super) fn record(subject: &str, payload: &[u8]) -> Option<Value> {
    let mut tokens = subject.split('.').skip(1);
    let (site, name) = (tokens.next()?, tokens.next()?);
    if payload.len() > LONGEST {
        return None;
    }
    let mut record: Value = serde_json::from_slice(payload).ok()?;
    record.as_object()?;
    for (key, own) in [("site", site), ("box", name)] {
        if record.get(key).is_some_and(|said| said != own) {
            return None;
        }
        record[key] = json!(own);
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_that_of_the_box_under_whose_subject_it_came() {
        let read = |text: &str| record("npcc.dc1.edge-2.state", text.as_bytes());
        let own = json!({"site": "dc1", "box": "edge-2", "at": 1});
        assert_eq!(
            read(r#"{"site":"dc1","box":"edge-2","at":1}"#),
            Some(own.clone())
        );
        assert_eq!(read(r#"{"at":1}"#), Some(own));
        for foreign in [
            r#"{"site":"dc1","box":"edge-1"}"#,
            r#"{"site":"dc2","box":"edge-2"}"#,
            r#"{"box":["edge-2"]}"#,
            "[]",
            "{",
        ] {
            assert_eq!(read(foreign), None, "{foreign}");
        }
        assert_eq!(read(&format!(r#"{{"x":"{}"}}"#, "a".repeat(LONGEST))), None);
    }
}
