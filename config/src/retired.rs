//! Retired values of the previous release: each is read for one release as its successor, with a warning.

use crate::diag::Problem;
use crate::tree::{Entry, Node, NodeKind, Path, Scalar};

/// Value that is no longer accepted, with its successor.
struct Retired {
    path: [&'static str; 2],
    value: &'static str,
    successor: &'static str,
    /// Hint: other values that may serve.
    hint: &'static str,
}

const RETIRED: [Retired; 4] = [
    Retired {
        path: ["npcc", "evidence"],
        value: "only",
        successor: "port",
        hint: "write port; `unpaired: all-qps` notifies every queue pair that may be the sender's",
    },
    Retired {
        path: ["npcc", "ecn"],
        value: "mark-unless-notified",
        successor: "divert",
        hint: "write divert: marks are sent as near CNPs where that is possible; `mark` always writes CE",
    },
    Retired {
        path: ["npcc", "ecn"],
        value: "clear-after-cnp",
        successor: "divert",
        hint: "write divert; `ports[].npcc.upstream_ce` says whether marks of switches before this one are answered",
    },
    Retired {
        path: ["npcc", "unpaired"],
        value: "none",
        successor: "mark",
        hint: "write mark: flows whose sender is not known keep ordinary ECN marking",
    },
];

/// Retired policy of a port or queue.
const POLICY: Retired = Retired {
    path: ["npcc", "policy"],
    value: "pi",
    successor: "model",
    hint: "write model, the default; parameters of `pi` are left out",
};

/// Replaces each retired value by its successor.
pub(crate) fn replace(root: &mut Node, warnings: &mut Vec<Problem>) {
    for retired in RETIRED {
        let [section, key] = retired.path;
        if let Some(node) = root.get_mut(Path::root(section).key(key).segs()) {
            retired.replace_in(node, warnings);
        }
    }
    if let Some(Node {
        kind: NodeKind::Seq { items, .. },
        ..
    }) = root.get_mut(Path::root("ports").segs())
    {
        for port in items {
            if let Some(npcc) = port.get_mut(Path::root("npcc").segs()) {
                policies(npcc, warnings);
            }
        }
    }
}

impl Retired {
    /// Replaces the node's value if it is the retired one; returns true if it was.
    fn replace_in(&self, node: &mut Node, warnings: &mut Vec<Problem>) -> bool {
        let NodeKind::Scalar(scalar) = &mut node.kind else {
            return false;
        };
        let Retired {
            value, successor, ..
        } = self;
        if scalar.text != *value {
            return false;
        }
        *scalar = Scalar::quoted((*successor).to_owned());
        let message = format!("`{value}` is no longer a choice, and is read as `{successor}`");
        warnings.push(Problem::new(node.span, message, self.hint));
        true
    }
}

/// Replaces the retired policy of a port and of its queues, and drops its parameters.
fn policies(npcc: &mut Node, warnings: &mut Vec<Problem>) {
    let of_port = npcc
        .get_mut(Path::root("policy").segs())
        .is_some_and(|node| POLICY.replace_in(node, warnings));
    let (mut replaced, mut others) = (Vec::new(), Vec::new());
    for entry in entries(npcc, "queue_policies").into_iter().flatten() {
        let queue = entry.key.text.clone();
        if POLICY.replace_in(&mut entry.value, warnings) {
            replaced.push(queue);
        } else {
            others.push(queue);
        }
    }
    let is_gone = |queue: &str| {
        let listed = |queues: &[String]| queues.iter().any(|one| one == queue);
        listed(&replaced) || of_port && !listed(&others)
    };
    if let Some(parameters) = entries(npcc, "parameters") {
        parameters.retain(|entry| !is_gone(&entry.key.text));
    }
}

/// Returns the entries of the mapping under a key.
fn entries<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Vec<Entry>> {
    match &mut node.get_mut(Path::root(key).segs())?.kind {
        NodeKind::Map { entries, .. } => Some(entries),
        NodeKind::Scalar(_) | NodeKind::Seq { .. } => None,
    }
}
