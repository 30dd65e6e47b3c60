//! Retired keys and values of the previous release. For one release a value is read as its successor, and a key is left out, each with a warning.

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

/// Key of a mapping that is no longer read, and the hint: what serves instead.
type RetiredKey = (&'static str, &'static str);

const OF_NPCC: [RetiredKey; 2] = [
    (
        "hard",
        "leave it out: from twice `deep` on no filter applies",
    ),
    ("hysteresis", "leave it out: it is 20%"),
];

const OF_CNP: [RetiredKey; 3] = [
    (
        "udp_source_port",
        "leave it out: it is 0, as network cards send",
    ),
    ("ttl", "leave it out: it is 64"),
    (
        "via",
        "leave it out: CNPs are routed, and prefer the flow's ingress port among equal paths",
    ),
];

const OF_PORT: [RetiredKey; 2] = [
    (
        "mode",
        "leave it out; for shorter queues write `shallow: 15us, deep: 60us`, with policy npcc also `parameters: { 3: { few: 20% } }`",
    ),
    (
        "hard",
        "leave it out: from twice `deep` on no filter applies",
    ),
];

const PARAMETERS: [RetiredKey; 4] = [
    (
        "horizon",
        "write `npcc.recovery`, which holds for all queues",
    ),
    ("dead_band", "leave it out: it is 20/1000 of the drain rate"),
    (
        "min_cnp_interval",
        "write `npcc.min_cnp_interval`, which holds for all queues",
    ),
    (
        "feedback",
        "write `npcc.feedback`, which holds for all queues",
    ),
];

/// Leaves out the retired keys of a mapping.
fn leave_out(node: &mut Node, keys: &[RetiredKey], warnings: &mut Vec<Problem>) {
    let NodeKind::Map { entries, .. } = &mut node.kind else {
        return;
    };
    entries.retain(|entry| {
        let Some((key, hint)) = keys.iter().find(|(key, _)| entry.key.text == *key) else {
            return true;
        };
        let message = format!("`{key}` is no longer a key, and is left out");
        warnings.push(Problem::new(entry.key_span, message, *hint));
        false
    });
}

/// Replaces each retired value by its successor, and leaves out the retired keys.
pub(crate) fn replace(root: &mut Node, warnings: &mut Vec<Problem>) {
    if let Some(npcc) = root.get_mut(Path::root("npcc").segs()) {
        leave_out(npcc, &OF_NPCC, warnings);
        if let Some(cnp) = npcc.get_mut(Path::root("cnp").segs()) {
            leave_out(cnp, &OF_CNP, warnings);
        }
    }
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
                leave_out(npcc, &OF_PORT, warnings);
                for queue in entries(npcc, "parameters").into_iter().flatten() {
                    leave_out(&mut queue.value, &PARAMETERS, warnings);
                }
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
