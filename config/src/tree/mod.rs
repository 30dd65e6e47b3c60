//! Text as a tree of nodes that know their place.
//!
//! One pass over the parser's events builds it; everything later (values, messages) reads the tree.
//! Law: a node's span is where its text stands, aliases included (they point at the alias, not at
//! the anchor). Size and depth are bounded, so that no text, however nested or aliased, can exhaust
//! memory or stack.

mod build;
mod path;
mod scalar;

pub(crate) use build::build;
pub(crate) use path::{Path, Seg};
pub(crate) use scalar::Scalar;

/// Piece of text on one line: 1-based line and column, length in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Span {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
}

/// Value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: NodeKind,
}

/// Kind of a node: scalar, sequence or mapping.
#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Scalar(Scalar),
    Seq {
        items: Vec<Node>,
        /// True if an element was taken out because it was wrong.
        incomplete: bool,
    },
    Map {
        entries: Vec<Entry>,
        /// Keys that were taken out, or replaced by a stand-in, because their values were wrong.
        doubtful: Vec<String>,
    },
}

/// Key of a mapping with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Scalar,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the child that a segment leads to.
    fn child(&self, seg: &Seg) -> Option<&Self> {
        match (&self.kind, seg) {
            (NodeKind::Map { entries, .. }, Seg::Key(key)) => {
                entries.iter().find(|e| e.key.is(key)).map(|e| &e.value)
            }
            (NodeKind::Seq { items, .. }, Seg::Index(i)) => items.get(*i),
            // A single value stands for a list of one where the model allows both.
            (NodeKind::Scalar(_), Seg::Index(0)) => Some(self),
            _ => None,
        }
    }

    fn child_mut(&mut self, seg: &Seg) -> Option<&mut Self> {
        match (&mut self.kind, seg) {
            (NodeKind::Map { entries, .. }, Seg::Key(key)) => entries
                .iter_mut()
                .find(|e| e.key.is(key))
                .map(|e| &mut e.value),
            (NodeKind::Seq { items, .. }, Seg::Index(i)) => items.get_mut(*i),
            _ => None,
        }
    }

    /// Returns the node at `path`, if it is written.
    pub(crate) fn get(&self, path: &Path) -> Option<&Self> {
        path.segs()
            .iter()
            .try_fold(self, |node, seg| node.child(seg))
    }

    pub(crate) fn get_mut(&mut self, path: &[Seg]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, seg| node.child_mut(seg))
    }

    /// Returns the place of the value at `path`, or of its nearest written ancestor.
    pub(crate) fn place(&self, path: &Path) -> Span {
        let mut node = self;
        let mut span = self.span;
        for seg in path.segs() {
            let Some(child) = node.child(seg) else { break };
            // A block collection has no text of its own: its key names it better.
            span = match (&node.kind, seg) {
                (NodeKind::Map { entries, .. }, Seg::Key(key)) if child.is_block() => entries
                    .iter()
                    .find(|e| e.key.is(key))
                    .map_or(child.span, |e| e.key_span),
                _ => child.span,
            };
            node = child;
        }
        span
    }

    /// Returns the place of the key at the end of `path`, or else what [`place`](Self::place) returns.
    pub(crate) fn place_of_key(&self, path: &Path) -> Span {
        if let Some((Seg::Key(key), parent)) = path.segs().split_last()
            && let Some(Self {
                kind: NodeKind::Map { entries, .. },
                ..
            }) = parent.iter().try_fold(self, |node, seg| node.child(seg))
            && let Some(entry) = entries.iter().find(|e| e.key.is(key))
        {
            return entry.key_span;
        }
        self.place(path)
    }

    /// Returns true if the value at `path` is as the operator wrote it (or left it out).
    pub(crate) fn is_certain(&self, path: &Path) -> bool {
        let mut node = self;
        for seg in path.segs() {
            match (&node.kind, seg) {
                (NodeKind::Map { doubtful, .. }, Seg::Key(key)) if doubtful.contains(key) => {
                    return false;
                }
                _ => {}
            }
            let Some(child) = node.child(seg) else {
                return true;
            };
            node = child;
        }
        !matches!(
            node.kind,
            NodeKind::Seq {
                incomplete: true,
                ..
            }
        )
    }

    /// Returns true if the value is empty.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar(s) if s.value.is_null())
    }

    fn is_block(&self) -> bool {
        self.span.length == 0
    }
}
