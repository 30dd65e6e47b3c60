//! DPDK plug-in that plays network cards, for tests.
//!
//! The C side (`csrc/`) is a bus, its devices and their ethdevs; this side answers for the drivers and their cards: what a driver reports
//! ([`profile`]), and the model of its rings and pauses ([`card`]). `scripts/cards` builds it; `docs/cards.md` says how a switch loads it.

mod answers;
mod card;
mod profile;
