//! `npcc-switch schema`

use anyhow::Context;

use super::{Failure, say};

pub(super) fn run() -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(&npcc_config::schema()).context("cannot write the schema")?;
    say(&format!("{text}\n"))
}
