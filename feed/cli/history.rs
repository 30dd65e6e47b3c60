//! `npcc-feed history`

use std::time::Duration;

use clap::Args;
use npcc_feed::fleet::history::{self, Wanted};

use super::common::{Failure, say, say_dropped};
use super::{SettingsArg, load};

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    settings: SettingsArg,
    /// Address of the host; without it all records but states and gaps are shown
    #[arg(long, value_name = "ADDRESS")]
    host: Option<std::net::IpAddr>,
    /// Age of the oldest record, such as 2h or 7days
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    since: Duration,
    /// Print each record as a line of JSON
    #[arg(long)]
    json: bool,
    /// Make JetStream keep the site's records for TIME from now on; prints no records
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with_all = ["host", "json"])]
    set_up: Option<Duration>,
}

pub(super) async fn run(args: &HistoryArgs) -> Result<(), Failure> {
    let settings = load(&args.settings)?;
    if let Some(kept) = args.set_up {
        let copies = history::set_up(&settings, kept).await?;
        let kept = humantime::format_duration(kept);
        let most = history::MOST_BYTES >> 30;
        say(&format!(
            "records of {} are kept for {kept}, or the last {most} GiB; copies: {copies}\n",
            settings.site
        ))?;
        return Ok(());
    }
    let wanted = Wanted {
        host: args.host.map(|host| host.to_string()),
        since: args.since,
    };
    let mut failed = Ok(());
    let count = history::history(&settings, &wanted, |record| {
        let line = if args.json {
            record.to_string()
        } else {
            history::text(record)
        };
        if failed.is_ok() {
            failed = say(&(line + "\n"));
        }
    });
    let (count, dropped) = count.await?;
    say_dropped(dropped);
    failed?;
    if count == 0 && !args.json {
        say("no matching records: use a larger --since, or check the address\n")?;
    }
    Ok(())
}
