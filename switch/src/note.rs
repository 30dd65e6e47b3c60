//! Lines for whoever started the switch.

use std::io::Write;

/// Writes a line to standard error; where that is closed nobody reads it.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
