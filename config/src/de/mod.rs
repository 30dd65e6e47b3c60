//! From the tree to the model through serde, with every mistake found and placed.
//!
//! serde stops at the first mistake. Here that mistake is noted with its place, what caused it is
//! taken out of the tree (or stood in for, where the model demands a value), and the reading starts
//! again, until it comes through. What was touched stays marked as doubtful, so that later checks do
//! not complain about the consequences.

mod access;
mod error;
mod peel;

pub(crate) use peel::read;
