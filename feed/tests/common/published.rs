//! The schema that `npcc-feed schema` publishes, and records that have its form or do not, as Python's jsonschema finds.

use std::io::Write;
use std::process::{Command, Stdio};

use npcc_testkit::python::python;
use serde_json::{Value, json};

use super::{feed, text};

/// Returns the published schemas as a JSON object, by the last part of the subject.
pub fn schemas() -> Value {
    let out = feed(&["schema"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Records of which a test claims that they have the published form, or that they do not. Nothing is checked before [`Claims::hold`].
#[derive(Debug, Default)]
pub struct Claims {
    records: Vec<(String, Value)>,
    /// Reason for which the record of the same place has not the form; empty if it has it.
    flaws: Vec<String>,
}

impl Claims {
    pub fn valid(&mut self, kind: &str, record: &Value) {
        self.add(kind, record.clone(), String::new());
    }

    pub fn invalid(&mut self, kind: &str, record: Value, flaw: &str) {
        assert!(!flaw.is_empty());
        self.add(kind, record, flaw.to_owned());
    }

    /// Claims that a record without any one of its keys, or of another version, is none.
    pub fn needs_all_keys(&mut self, kind: &str, record: &Value) {
        for key in record.as_object().unwrap().keys() {
            let mut without = record.clone();
            without.as_object_mut().unwrap().remove(key);
            self.invalid(kind, without, &format!("no {key}"));
        }
        let mut later = record.clone();
        later["v"] = json!(2);
        self.invalid(kind, later, "version 2");
    }

    fn add(&mut self, kind: &str, record: Value, flaw: String) {
        self.records.push((kind.to_owned(), record));
        self.flaws.push(flaw);
    }

    /// Asserts all claims.
    #[track_caller]
    pub fn hold(self) {
        let errors = errors(&json!({"schemas": schemas(), "records": self.records}));
        assert_eq!(errors.len(), self.flaws.len());
        for (((kind, record), flaw), errors) in self.records.iter().zip(self.flaws).zip(errors) {
            assert_eq!(
                flaw.is_empty(),
                errors.is_empty(),
                "{kind}, {flaw}: {errors:?} in {record:#}"
            );
        }
    }
}

/// Returns the errors of each record.
fn errors(given: &Value) -> Vec<Vec<String>> {
    let mut child = Command::new(python())
        .args(["-c", include_str!("valid.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).unwrap();
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    assert!(
        out.status.success(),
        "jsonschema failed: run scripts/test, which installs it in .venv"
    );
    serde_json::from_slice(&out.stdout).unwrap()
}
