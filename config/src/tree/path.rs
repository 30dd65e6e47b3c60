//! Path from the root of the document to a value.

use std::fmt;

/// Step of a path: a mapping's key or a list's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seg {
    Key(String),
    Index(usize),
}

/// Path: steps from the root.
#[derive(Debug, Clone, PartialEq, Eq, Default, derive_more::From)]
pub(crate) struct Path(Vec<Seg>);

impl Path {
    /// Returns the path of a top-level key.
    pub(crate) fn root(key: &str) -> Self {
        Self::default().key(key)
    }

    /// Returns the path one step further, by key.
    pub(crate) fn key(&self, key: impl fmt::Display) -> Self {
        self.step(Seg::Key(key.to_string()))
    }

    /// Returns the path one step further, by index.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.step(Seg::Index(index))
    }

    fn step(&self, seg: Seg) -> Self {
        let mut segs = self.0.clone();
        segs.push(seg);
        Self(segs)
    }

    pub(crate) fn segs(&self) -> &[Seg] {
        &self.0
    }
}
