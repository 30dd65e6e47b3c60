//! Log messages for the operator: lines on standard error, or entries of the journal with fields where systemd started the switch.
//!
//! Code logs by `tracing`, off the packet path. A line is the message alone; the journal has the fields beside it, each with the prefix
//! `NPCC_`.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write as _};

use crate::recorder::said::Recorded;
use nix::sys::stat::fstat;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// Installs the subscriber: messages go to the journal if standard error leads there, else to standard error.
pub fn init() {
    let journal = leads_to_the_journal().then(tracing_journald::layer);
    // A second run in one process keeps the subscriber of the first.
    let _ = match journal {
        Some(Ok(layer)) => {
            let layer = layer
                .with_field_prefix(Some("NPCC".to_owned()))
                .with_syslog_identifier("npcc-switch".to_owned());
            tracing::subscriber::set_global_default(registry().with(layer).with(Recorded))
        }
        _ => tracing::subscriber::set_global_default(registry().with(Lines).with(Recorded)),
    };
}

/// Logs a line for the operator.
pub fn note(text: &str) {
    tracing::warn!("{text}");
}

/// Returns true if standard error is the stream that systemd made for the journal, by `JOURNAL_STREAM`.
fn leads_to_the_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    fstat(std::io::stderr()).is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
}

/// Layer that writes messages as lines to standard error.
struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if std::io::stderr().is_terminal() {
            // Erases the progress line, which is written again later.
            line.0.insert_str(0, "\r\x1b[K");
        }
        line.0.push('\n');
        // If standard error is closed the line is lost.
        let _ = std::io::stderr().write_all(line.0.as_bytes());
    }

    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Debug messages are for the journal's readers, who enable them.
        *metadata.level() <= tracing::Level::INFO
    }
}

/// Message of an event.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Layer that keeps the lines instead of writing them.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }

    #[test]
    fn a_line_is_the_message_without_its_fields() {
        let kept = Arc::default();
        let subscriber = registry().with(Kept(Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(uid = 0, port = "wan0", "{}", "a change");
            note("note: none");
        });
        assert_eq!(*kept.lock().unwrap(), ["a change", "note: none"]);
    }
}
