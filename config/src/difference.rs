//! Differences between two configurations, key by key, with every default filled in.
//!
//! Ports, VLANs, routes and neighbours are identified by their names or keys, not by their place: adding a port does not
//! make all that follow differ.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::ConfigFile;

/// Keys that may identify a list entry, in order of preference.
pub(crate) const NAMES: [&str; 4] = ["name", "prefix", "address", "id"];

/// Difference in the value of one key.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(default)]
pub struct Difference {
    /// Path of the key, such as `npcc.recovery`, `ports.wan0.npcc.policy` or `routes.10.0.2.0/24`.
    pub key: String,
    /// Old value; absent when the key is new.
    pub old: Option<String>,
    /// New value; absent when the key is gone.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let (old, new) = (side(&self.old), side(&self.new));
        write!(out, "{}: {old} -> {new}", self.key)
    }
}

/// Returns the differences between two files, in the order of the keys.
#[must_use]
pub fn differences(old: &ConfigFile, new: &ConfigFile) -> Vec<Difference> {
    let mut found = Vec::new();
    // A model always encodes.
    let encode = |file: &ConfigFile| serde_json::to_value(file).unwrap_or_default();
    compare("", &encode(old), &encode(new), &mut found);
    found.sort();
    found
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    if old == new {
        return;
    }
    match (children(old), children(new)) {
        (Some(old), Some(new)) => {
            for name in old
                .keys()
                .chain(new.keys().filter(|k| !old.contains_key(*k)))
            {
                let path = join(path, name);
                let null = Value::Null;
                let of = |map: &BTreeMap<String, Value>| map.get(name).cloned();
                let (old, new) = (of(&old), of(&new));
                compare(
                    &path,
                    old.as_ref().unwrap_or(&null),
                    new.as_ref().unwrap_or(&null),
                    found,
                );
            }
        }
        _ => found.push(Difference {
            key: path.to_owned(),
            old: text(old),
            new: text(new),
        }),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns the entries of a map, or of a list whose entries have a name of their own.
fn children(value: &Value) -> Option<BTreeMap<String, Value>> {
    match value {
        Value::Object(map) => Some(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()),
        Value::Array(entries) => {
            let mut named: BTreeMap<String, Value> = BTreeMap::new();
            for entry in entries {
                let name = name_of(entry)?;
                // Routes of one prefix are one route with several next hops.
                match named.get_mut(&name) {
                    Some(Value::Array(all)) => all.push(entry.clone()),
                    _ => {
                        named.insert(name, Value::Array(vec![entry.clone()]));
                    }
                }
            }
            let alone = |entry: Value| match entry {
                Value::Array(mut all) if all.len() == 1 => all.remove(0),
                several => several,
            };
            Some(named.into_iter().map(|(k, v)| (k, alone(v))).collect())
        }
        _ => None,
    }
}

fn name_of(entry: &Value) -> Option<String> {
    let id = NAMES.iter().find_map(|key| entry.get(key))?;
    Some(match id {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(brief(other).to_string()),
    }
}

/// Returns the value without keys that are null (not written).
fn brief(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let written = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(written.map(|(k, v)| (k.clone(), brief(v))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "version: 1
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24] }
  - { name: wan0, device: net_null1, speed: 10G, addresses: [10.0.12.1/24], npcc: { queues: [3] } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
";

    fn file(text: &str) -> ConfigFile {
        crate::parse("t.yaml", text).unwrap().file
    }

    fn reported(new: &str) -> Vec<(String, Option<String>, Option<String>)> {
        differences(&file(BASE), &file(new))
            .into_iter()
            .map(|one| (one.key, one.old, one.new))
            .collect()
    }

    #[test]
    fn defaults_written_out_are_no_difference() {
        assert_eq!(reported(&format!("{BASE}npcc: {{ tick: 20us }}\n")), []);
    }

    #[test]
    fn keys_are_named_with_both_values() {
        let new = BASE.replace("{ queues: [3] }", "{ queues: [3], policy: npcc }")
            + "npcc: { recovery: 500us }\n";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            reported(&new),
            [
                ("npcc.recovery".to_owned(), some("300us"), some("500us")),
                (
                    "ports.wan0.npcc.policy".to_owned(),
                    some("model"),
                    some("npcc")
                ),
            ]
        );
    }

    #[test]
    fn entries_of_lists_come_and_go_by_name() {
        let port = "  - { name: a0, device: net_null2, addresses: [10.0.9.1/24] }\n";
        let new = BASE
            .replace("ports:\n", &format!("ports:\n{port}"))
            .replace("10.0.2.0/24", "10.0.3.0/24");
        let keys: Vec<(String, bool, bool)> = reported(&new)
            .into_iter()
            .map(|(key, old, new)| (key, old.is_some(), new.is_some()))
            .collect();
        assert_eq!(
            keys,
            [
                ("ports.a0".to_owned(), false, true),
                ("routes.10.0.2.0/24".to_owned(), true, false),
                ("routes.10.0.3.0/24".to_owned(), false, true),
            ]
        );
    }
}
