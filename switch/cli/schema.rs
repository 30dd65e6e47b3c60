//! `npcc-switch schema`

use anyhow::Context;
use clap::Args;

use super::{Failure, say};

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Print the OpenAPI document of the management sockets instead
    #[arg(long)]
    api: bool,
}

pub(super) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let schema = if args.api {
        npcc_api::openapi::document()
    } else {
        npcc_config::schema()
    };
    let text = serde_json::to_string_pretty(&schema).context("cannot write the schema")?;
    say(&format!("{text}\n"))
}
