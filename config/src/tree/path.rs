//! The way from the root of the document to a value.

use std::fmt;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seg {
    Key(String),
    Index(usize),
}

/// Steps from the root.
#[derive(Debug, Clone, PartialEq, Eq, Default, derive_more::From)]
pub(crate) struct Path(Vec<Seg>);

impl Path {
    /// The path of a top-level key.
    pub(crate) fn root(key: &str) -> Self {
        Self::default().key(key)
    }

    /// One step further, by key.
    pub(crate) fn key(&self, key: impl fmt::Display) -> Self {
        self.step(Seg::Key(key.to_string()))
    }

    /// One step further, by index.
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
