//! Values of the release before: each is read for one release as its successor, with a warning.

use crate::diag::Problem;
use crate::tree::{Kind, Node, Path, Scalar};

/// A value that is no more.
struct Retired {
    path: [&'static str; 2],
    value: &'static str,
    successor: &'static str,
    /// What else may serve.
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

/// Puts the successor in the place of each retired value.
pub(crate) fn replace(root: &mut Node, warnings: &mut Vec<Problem>) {
    for retired in RETIRED {
        let [section, key] = retired.path;
        let path = Path::root(section).key(key);
        let Some(node) = root.get_mut(path.segs()) else {
            continue;
        };
        if let Kind::Scalar(scalar) = &mut node.kind
            && scalar.text == retired.value
        {
            *scalar = Scalar::quoted(retired.successor.to_owned());
            let Retired {
                value, successor, ..
            } = retired;
            let message = format!("`{value}` is no longer a choice, and is read as `{successor}`");
            warnings.push(Problem::new(node.span, message, retired.hint));
        }
    }
}
