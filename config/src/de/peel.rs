//! Deserialization loop: read, note the mistake, remove it, read again.

use serde::de::DeserializeOwned;

use super::access::Reader;
use super::error::Fault;
use crate::diag::Problem;
use crate::tree::{Entry, Node, NodeKind, Path, Scalar, Seg, Span};

/// Maximum number of mistakes of form that are looked for; each costs a pass over the tree.
const MAX_FAULTS: usize = 200;

/// Reads the model from the tree and notes every mistake; wrong values are changed in the tree.
///
/// `None` when even the changed tree cannot be read.
pub(crate) fn read<T: DeserializeOwned>(root: &mut Node, problems: &mut Vec<Problem>) -> Option<T> {
    for _ in 0..MAX_FAULTS {
        let error = match T::deserialize(Reader(root)) {
            Ok(model) => return Some(model),
            Err(error) => error,
        };
        let mut way = error.way;
        way.reverse();
        let path = Path::from(way.clone());
        let span = if error.at_key {
            root.place_of_key(&path)
        } else {
            root.place(&path)
        };
        let already_reported = match &error.fault {
            Fault::MissingKey { key } => !root.is_certain(&path.key(key)),
            _ => false,
        };
        if !already_reported {
            let (message, hint) = error.fault.words();
            problems.push(Problem::new(span, message, hint));
        }
        let mended = match &error.fault {
            Fault::MissingKey { key } => stand_in(root, &way, key, span) || take_out(root, &way),
            _ => take_out(root, &way),
        };
        if !mended {
            return None;
        }
    }
    None
}

/// Removes the node at `way` from its parent and marks the parent; returns `false` at the root.
fn take_out(root: &mut Node, way: &[Seg]) -> bool {
    let Some((last, parent)) = way.split_last() else {
        return false;
    };
    let Some(parent) = root.get_mut(parent) else {
        return false;
    };
    match (&mut parent.kind, last) {
        (NodeKind::Map { entries, doubtful }, Seg::Key(key)) => {
            let before = entries.len();
            entries.retain(|e| !e.key.is(key));
            doubtful.push(key.clone());
            entries.len() < before
        }
        (NodeKind::Seq { items, incomplete }, Seg::Index(index)) if *index < items.len() => {
            items.remove(*index);
            *incomplete = true;
            true
        }
        _ => false,
    }
}

/// Inserts a harmless value where the model demands one, so that the rest of the mapping is read too.
fn stand_in(root: &mut Node, way: &[Seg], key: &str, span: Span) -> bool {
    let value = match key {
        "name" | "device" | "port" => "-",
        "mac" => "00:00:00:00:00:00",
        "address" | "via" => "0.0.0.0",
        "prefix" => "0.0.0.0/0",
        "id" => "1",
        _ => return false,
    };
    let Some(Node {
        kind: NodeKind::Map { entries, doubtful },
        ..
    }) = root.get_mut(way)
    else {
        return false;
    };
    if entries.iter().any(|e| e.key.is(key)) {
        return false;
    }
    let value = Node {
        span,
        kind: NodeKind::Scalar(Scalar::plain(value.to_owned())),
    };
    entries.push(Entry {
        key: Scalar::quoted(key.to_owned()),
        key_span: span,
        value,
    });
    doubtful.push(key.to_owned());
    true
}
