//! Arguments that several commands take.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use npcc_api::query::Query;
use npcc_appliance::manage::tables::{self, Entry};

use super::socket::SocketArg;

/// Name by which `show` prints the running configuration.
pub(super) const CONFIG: &str = "config";

/// Name by which `show` prints the ends that the switch saw.
pub(super) const ENDS: &str = "ends";

/// A number, decimal or hexadecimal with 0x.
pub(super) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write a number such as 17 or 0x11".to_owned())
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Table to show
    #[arg(value_parser = names().map(canonical))]
    pub(super) what: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print a line of JSON for each flow, host or line of the log, as they come: flows in no order, unless --top is given
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub(super) jsonl: bool,
    /// Repeat every second
    #[arg(long)]
    pub(super) watch: bool,
    /// Go on with what changes after the snapshot of ends, a line of JSON each
    #[arg(long, conflicts_with_all = ["watch", "jsonl"])]
    pub(super) follow: bool,
    #[command(flatten)]
    pub(super) rows: RowArgs,
    #[command(flatten)]
    pub(super) socket: SocketArg,
}

/// Which flows, hosts or lines of the log.
#[derive(Debug, Args)]
pub(super) struct RowArgs {
    /// Show so many rows at most: the heaviest flows, the hosts with most CNPs, the latest lines of the log
    #[arg(long, visible_alias = "last", value_name = "N")]
    top: Option<usize>,
    /// Show the rows that follow the first N of --top: page 2 has N+1 to 2N
    #[arg(long, value_name = "K", requires = "top", value_parser = clap::value_parser!(u64).range(1..))]
    page: Option<u64>,
    /// Only from or to this host, or the hosts of this prefix
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Only with this queue pair at either end, such as 17 or 0x11
    #[arg(long, value_parser = number)]
    qp: Option<u32>,
    /// Only flows that leave by this port
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only flows in the queue of this priority
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..8))]
    priority: Option<u8>,
    /// Only flows whose sender is known by this evidence; none for those that are not
    #[arg(long, value_name = "NAME")]
    evidence: Option<String>,
    /// Only flows that did this after their last CNP: halved, weak or none
    #[arg(long, value_name = "NAME")]
    response: Option<String>,
    /// Only flows that nobody has answered yet
    #[arg(long)]
    cold: bool,
    /// Only flows that were told, or would have been
    #[arg(long)]
    told: bool,
    /// Show only differences: routes that the switch does not have as Linux has them, none if all is well; of config what differs from the file
    #[arg(long)]
    pub(super) diff: bool,
    /// Only lines of the log with this outcome: sent, would-send or refused
    #[arg(long, value_name = "NAME")]
    outcome: Option<String>,
}

impl RowArgs {
    pub(super) fn query(&self) -> Query {
        Query {
            top: self.top,
            page: self
                .page
                .map(|page| usize::try_from(page).unwrap_or(usize::MAX)),
            after: None,
            host: self.host.clone(),
            qp: self.qp,
            port: self.port.clone(),
            priority: self.priority,
            evidence: self.evidence.clone(),
            response: self.response.clone(),
            cold: self.cold,
            told: self.told,
            outcome: self.outcome.clone(),
            diff: self.diff,
        }
    }
}

fn names() -> PossibleValuesParser {
    let all = tables::ALL.iter();
    let config = PossibleValue::new(CONFIG)
        .help("The running configuration; --diff: how it differs from the file");
    let value = |table: &Entry| {
        let value = PossibleValue::new(table.name).help(table.about());
        value.aliases(table.name.strip_suffix('s'))
    };
    let ends = PossibleValue::new(ENDS)
        .help("Reverse traffic that the switch saw, which tells other boxes the senders of their flows; --json: a line each");
    all.map(value)
        .chain([ends, config])
        .collect::<Vec<_>>()
        .into()
}

/// Name of a table that may be written in the singular.
#[expect(
    clippy::needless_pass_by_value,
    reason = "clap gives a value parser what it has read"
)]
fn canonical(name: String) -> String {
    let is_singular = |table: &&Entry| table.name.strip_suffix('s') == Some(&name);
    let table = tables::ALL.iter().find(is_singular);
    table.map_or(name.as_str(), |table| table.name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((number("17"), number("0x11")), (Ok(17), Ok(17)));
        assert!(number("eleven").is_err());
    }
}
