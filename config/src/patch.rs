//! Overrides: values set at paths of a configuration. They hold an operator's changes to a running switch, on top of the file.
//!
//! A path consists of keys, and of the names of list entries, separated by dots: `npcc.action`, `ports.wan0.speed`,
//! `qos.priorities.3.ecn.kmin`. It is the path that [`differences`](crate::differences) gives.

use std::collections::BTreeMap;

use crate::diag::Problem;
use crate::tree::{Entry, Node, NodeKind, Scalar, Span, build};

/// First line number of overrides, beyond the lines of any text. From it on each line stands for one override, in their order.
pub(crate) const FIRST: usize = usize::MAX / 2;

/// Overrides: values by path. A value whose path lies within another's follows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides(BTreeMap<String, String>);

impl Overrides {
    /// Sets a value, as YAML, and drops overrides at paths within it.
    pub fn set(&mut self, path: &str, value: &str) {
        self.0.retain(|other, _| !is_within(other, path));
        self.0.insert(path.to_owned(), value.to_owned());
    }

    /// Drops the values at a path and within it; returns their paths.
    pub fn unset(&mut self, path: &str) -> Vec<String> {
        let gone = self.0.keys().filter(|key| is_within(key, path));
        let gone: Vec<String> = gone.cloned().collect();
        for key in &gone {
            self.0.remove(key);
        }
        gone
    }

    /// Iterates over paths and values, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(path, value)| (path.as_str(), value.as_str()))
    }

    /// Returns true if there are no overrides.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the override that a problem on this line is about.
    pub(crate) fn at_line(&self, line: usize) -> Option<(&str, &str)> {
        self.iter().nth(line.checked_sub(FIRST)?)
    }

    /// Applies the overrides to a tree.
    pub(crate) fn patch(&self, root: &mut Node, problems: &mut Vec<Problem>) {
        for ((path, value), line) in self.iter().zip(FIRST..) {
            let span = Span {
                line,
                column: 1,
                length: 1,
            };
            if let Err((message, hint)) = set_at(root, (path, value), span) {
                problems.push(Problem::new(span, message, hint));
            }
        }
    }
}

/// Returns true if `path` equals `of` or lies within it.
#[must_use]
pub fn is_within(path: &str, of: &str) -> bool {
    let rest = path.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

type Wrong = (String, &'static str);

fn set_at(root: &mut Node, (path, value): (&str, &str), span: Span) -> Result<(), Wrong> {
    let not_yaml = |_| {
        let hint = "write it as in the configuration; quote what the shell reads";
        (format!("`{value}` is no value"), hint)
    };
    let mut wrong = Vec::new();
    let built = build(value, &mut wrong).and_then(|built| match wrong.pop() {
        Some(problem) => Err(problem),
        None => Ok(built),
    });
    let value = built.map_err(not_yaml)?;
    let mut value = value.unwrap_or_else(|| null(span));
    place(&mut value, span);
    put(root, path, value, span)
}

fn null(span: Span) -> Node {
    Node {
        span,
        kind: NodeKind::Scalar(Scalar::plain(String::new())),
    }
}

/// Moves a value and everything in it to `span`, so that problems are reported there.
fn place(node: &mut Node, span: Span) {
    node.span = span;
    match &mut node.kind {
        NodeKind::Scalar(_) => {}
        NodeKind::Seq { items, .. } => items.iter_mut().for_each(|item| place(item, span)),
        NodeKind::Map { entries, .. } => {
            for entry in entries {
                entry.key_span = span;
                place(&mut entry.value, span);
            }
        }
    }
}

fn put(node: &mut Node, path: &str, value: Node, span: Span) -> Result<(), Wrong> {
    if path.is_empty() {
        *node = value;
        return Ok(());
    }
    if let NodeKind::Seq { items, .. } = &mut node.kind {
        let found = items.iter_mut().find_map(|item| {
            let rest = path.strip_prefix(called(item)?)?;
            let ends = rest.is_empty() || rest.starts_with('.');
            ends.then_some((item, rest.trim_start_matches('.')))
        });
        let (item, rest) = found.ok_or_else(|| {
            let hint = "name an entry of the list as the configuration does";
            (format!("there is no `{path}`"), hint)
        })?;
        return put(item, rest, value, span);
    }
    // A word such as `off` gives way to keys.
    if matches!(node.kind, NodeKind::Scalar(_)) {
        *node = Node {
            span,
            kind: NodeKind::Map {
                entries: Vec::new(),
                doubtful: Vec::new(),
            },
        };
    }
    let NodeKind::Map { entries, .. } = &mut node.kind else {
        return Ok(());
    };
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let at = entries.iter().position(|entry| entry.key.is(key));
    let at = at.unwrap_or_else(|| {
        entries.push(Entry {
            key: Scalar::plain(key.to_owned()),
            key_span: span,
            value: null(span),
        });
        entries.len() - 1
    });
    let Some(entry) = entries.get_mut(at) else {
        return Ok(());
    };
    // A key that was not written before is placed here.
    if rest.is_empty() || entry.value.is_null() {
        entry.key_span = span;
    }
    put(&mut entry.value, rest, value, span)
}

/// Returns the name of a list entry; see [`differences`](crate::differences).
fn called(item: &Node) -> Option<&str> {
    let NodeKind::Map { entries, .. } = &item.kind else {
        return None;
    };
    let id = crate::difference::NAMES
        .iter()
        .find_map(|name| entries.iter().find(|entry| entry.key.is(name)))?;
    match &id.value.kind {
        NodeKind::Scalar(scalar) => Some(&scalar.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loaded, differences, parse, patched};

    const BASE: &str = "version: 1
ports:
  - { name: dc0, device: net_null0, speed: 10G, mtu: 1500, pfc: send }
  - { name: wan0, device: net_null1, speed: 10G, npcc: { queues: [3] } }
qos: { priorities: { 0: { wred: { min: 30KB, max: 150KB } }, 3: { ecn: { kmin: 20KB, kmax: 100KB } } } }
buffer: { pool: 2MB }
";

    fn tried(all: &[(&str, &str)]) -> Result<Loaded, String> {
        let file = parse("t.yaml", BASE).unwrap().file;
        let mut overrides = Overrides::default();
        for (path, value) in all {
            overrides.set(path, value);
        }
        patched("t.yaml", &file, &overrides).map_err(|report| report.to_string())
    }

    #[test]
    fn a_value_at_a_path_is_as_if_the_file_had_it_there() {
        for (path, value, from, to) in [
            (
                "npcc.action",
                "observe",
                "buffer:",
                "npcc: { action: observe }\nbuffer:",
            ),
            (
                "ports.wan0.speed",
                "50M",
                "net_null1, speed: 10G",
                "net_null1, speed: 50M",
            ),
            (
                "ports.wan0.npcc.policy",
                "npcc",
                "queues: [3]",
                "queues: [3], policy: npcc",
            ),
            (
                "ports.wan0.npcc.queue_actions.3",
                "off",
                "queues: [3]",
                "queues: [3], queue_actions: { 3: off }",
            ),
            (
                "qos.priorities.3.ecn",
                "off",
                "{ kmin: 20KB, kmax: 100KB }",
                "off",
            ),
            ("qos.priorities.3.ecn.kmin", "40KB", "20KB", "40KB"),
            (
                "qos.priorities.5.weight",
                "7",
                "priorities: {",
                "priorities: { 5: { weight: 7 },",
            ),
            (
                "npcc.hosts.deny",
                "[10.0.1.0/24]",
                "buffer:",
                "npcc: { hosts: { deny: [10.0.1.0/24] } }\nbuffer:",
            ),
        ] {
            let set = tried(&[(path, value)]).unwrap();
            let written = parse("t.yaml", &BASE.replacen(from, to, 1)).unwrap();
            assert_eq!(differences(&set.file, &written.file), [], "{path}");
            assert_eq!(set.config, written.config, "{path}");
            let changed = differences(&parse("t.yaml", BASE).unwrap().file, &set.file);
            assert_eq!(changed.len(), 1, "{changed:?}");
            let key = &changed[0].key;
            assert!(
                is_within(path, key) || is_within(key, path),
                "{path}: {key}"
            );
        }
    }

    #[test]
    fn what_a_file_may_not_say_is_refused_with_key_and_value() {
        for (path, value, word) in [
            ("qos.priorities.3.ecn.kmin", "200KB", "kmin"),
            ("qos.priorities.3.ecn.kmax", "1900KB", "XOFF"),
            ("qos.priorities.3.ecn.kmax", "many", "many"),
            ("qos.priorities.3.ecn.pmax", "200KB", "200KB"),
            ("qos.priorities.3.ecn", "on", "ECN"),
            ("qos.priorities.3.wred.min", "10KB", "lossless"),
            ("qos.priorities.0.wred.max", "10KB", "min"),
            ("qos.priorities.0.wred.least", "10KB", "least"),
            ("qos.priorities.3.weight", "101", "1 to 100"),
            ("qos.priorities.6.weight", "5", "strict"),
            ("ports.lan9.speed", "1G", "lan9"),
            ("ports.wan0.speed", "fast", "fast"),
            ("npcc.acton", "send", "did you mean"),
            ("npcc.recovery", "{ 1", "no value"),
            ("npcc.recovery", "[1ms", "no value"),
        ] {
            let error = tried(&[(path, value)]).unwrap_err();
            assert!(error.contains(word), "{path} {value}: {error}");
            // A bound above or below another one is said of the lower one, which may be the file's.
            let of_another = path.ends_with(".max") || path.ends_with(".kmax") && word == "XOFF";
            assert!(
                of_another || error.starts_with(&format!("{path} {value}: error: ")),
                "{path} {value}: {error}"
            );
        }
    }

    #[test]
    fn a_value_takes_the_place_of_those_within_it() {
        let mut all = Overrides::default();
        all.set("qos.priorities.3.ecn.kmin", "1KB");
        all.set("qos.priorities.3.ecn.kmax", "2KB");
        all.set("qos.priorities.30", "no such, and no part of 3");
        all.set("qos.priorities.3.ecn", "off");
        let paths = |all: &Overrides| {
            all.iter()
                .map(|(path, _)| path.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(&all), ["qos.priorities.3.ecn", "qos.priorities.30"]);
        all.set("qos.priorities.3.ecn.kmin", "1KB");
        all.set("qos.priorities.3.weight", "7");
        let three = [
            "qos.priorities.3.ecn",
            "qos.priorities.3.ecn.kmin",
            "qos.priorities.3.weight",
        ];
        assert_eq!(all.unset("qos.priorities.3"), three);
        assert_eq!(paths(&all), ["qos.priorities.30"]);
        assert_eq!(all.unset("qos.priorities.3"), [""; 0]);
    }
}
