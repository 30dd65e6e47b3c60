//! Deserialization from the tree to the model through serde, with every mistake found and placed.
//!
//! serde stops at the first mistake. Here that mistake is noted with its place, its cause is
//! taken out of the tree (or replaced by a stand-in, where the model demands a value), and reading starts
//! again, until it succeeds. Nodes that were changed stay marked as doubtful, so that later checks do
//! not report the consequences.

mod access;
mod error;
mod peel;

pub(crate) use peel::read;
