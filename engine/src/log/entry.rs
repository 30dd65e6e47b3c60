//! Entries of the system's journal, in its native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>): fields with names, of any
//! octets.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// Beginning of the names of an event's own fields.
const PREFIX: &str = "NPCC_";

/// Returns the entry of an event, with a field for each of its own.
pub(super) fn of(event: &Event<'_>) -> Vec<u8> {
    let metadata = event.metadata();
    let mut entry = Entry::new(metadata.level());
    entry.put("TARGET", metadata.target());
    if let Some(file) = metadata.file() {
        entry.put("CODE_FILE", file);
    }
    if let Some(line) = metadata.line() {
        entry.put("CODE_LINE", &line.to_string());
    }
    event.record(&mut entry);
    entry.0
}

/// Returns the entry of a warning without fields.
pub(super) fn warning(text: &str) -> Vec<u8> {
    let mut entry = Entry::new(&Level::WARN);
    entry.put("MESSAGE", text);
    entry.0
}

/// Entry in the making.
struct Entry(Vec<u8>);

impl Entry {
    fn new(level: &Level) -> Entry {
        let mut entry = Entry(Vec::new());
        // The numbers are syslog's.
        let priority = match *level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "5",
            Level::DEBUG => "6",
            Level::TRACE => "7",
        };
        entry.put("PRIORITY", priority);
        entry.put("SYSLOG_IDENTIFIER", "npcc-switch");
        entry
    }

    /// Adds a field. With its length before it, a value may contain newlines.
    fn put(&mut self, name: &str, value: &str) {
        self.0.extend(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend((value.len() as u64).to_le_bytes());
        self.0.extend(value.as_bytes());
        self.0.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.put("MESSAGE", value),
            name => self.put(&format!("{PREFIX}{}", name.to_ascii_uppercase()), value),
        }
    }
}
