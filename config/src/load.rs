//! Loading: from a file or a text to a configuration or a report.

use std::io::ErrorKind;
use std::path::Path;
use std::string::FromUtf8Error;

use crate::check;
use crate::de;
use crate::diag::{Diagnostic, Problem, Report, Severity};
use crate::model::ConfigFile;
use crate::patch::Overrides;
use crate::regular::{self, ReadError};
use crate::resolved::Config;
use crate::tree::{self, Node, Span};

/// Configuration that can be run, with warnings for the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Validated configuration.
    pub config: Config,
    /// File it came from: values as they are written there, not yet resolved, and the defaults of the keys that are not written.
    pub file: ConfigFile,
    /// Settings that are accepted but have no or limited effect, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// Reads and checks a regular file of at most [`regular::MOST`] bytes; never blocks. No line is quoted of a file that is no configuration
/// at all: a user who may have a file checked may not always read it.
///
/// # Errors
/// Everything that is wrong with it, including that it cannot be read or is not UTF-8.
pub fn load(path: &Path) -> Result<Loaded, Report> {
    let hint = "at least `ports:` with a name and a device each is needed: is it the right file?";
    let text = text(path, "ports", hint)?;
    parse(&path.display().to_string(), &text)
}

/// Reads a regular file that has `key` as a key somewhere; `hint` is for one that has not.
///
/// # Errors
/// The reason why it cannot be read, without a line of a file that has no such key.
pub(crate) fn text(path: &Path, key: &str, hint: &str) -> Result<String, Report> {
    let name = path.display().to_string();
    let refuse = |message: String, hint: &str| {
        let hint = hint.to_owned();
        Report::new(vec![Diagnostic::of_file(
            Severity::Error,
            &name,
            message,
            hint,
        )])
    };
    let bytes = regular::read(path).map_err(|error| {
        let hint = match &error {
            ReadError::Io(e) if e.kind() == ErrorKind::NotFound => "check the path given to -c",
            ReadError::Io(e) if e.kind() == ErrorKind::PermissionDenied => {
                "make the file and its folder readable for this user; a reload reads it as the running switch's own (`user:`)"
            }
            ReadError::Io(_) => "check the path and the disk",
            ReadError::Irregular(_) => "write the configuration to a file, and name that",
            ReadError::TooLong => "is it the right file?",
        };
        refuse(format!("cannot read the file: {error}"), hint)
    })?;
    if !has_key(&bytes, key.as_bytes()) {
        return Err(refuse("the file holds no configuration".to_owned(), hint));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(&name, &error))
}

/// Returns true if `key` is a key somewhere in a text.
fn has_key(text: &[u8], key: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.windows(key.len()).enumerate().any(|(at, found)| {
        let before = text.get(..at).and_then(<[u8]>::last);
        let rest = text.get(at + key.len()..).unwrap_or_default().iter();
        let mut rest = rest.skip_while(|byte| matches!(byte, b'"' | b'\'' | b' ' | b'\t'));
        found == key && !before.is_some_and(is_word) && rest.next() == Some(&b':')
    })
}

/// Returns the report of a file that is not UTF-8, with the place of the first invalid byte.
fn not_utf8(name: &str, error: &FromUtf8Error) -> Report {
    let at = error.utf8_error().valid_up_to();
    let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
    let last = before.rsplit('\n').next().unwrap_or_default();
    let span = Span {
        line: before.matches('\n').count() + 1,
        column: last.chars().count() + 1,
        length: 1,
    };
    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let hint = "save it as UTF-8, or remove the character";
    let problem = Problem::new(span, "the file is not UTF-8 from here on", hint);
    Report::new(vec![Diagnostic::new(
        Severity::Error,
        name,
        &lines,
        problem,
    )])
}

/// Checks a text; `name` is its name in diagnostics.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; warnings are among it.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Report> {
    parse_with(name, text, &Overrides::default())
}

/// Checks a file as it would be with the values of `overrides` at their paths.
///
/// # Errors
/// Returns the mistakes that [`parse`] would report; one in an override is reported at its path instead of a line.
pub fn patched(name: &str, file: &ConfigFile, overrides: &Overrides) -> Result<Loaded, Report> {
    // A model always encodes.
    let text = serde_yaml::to_string(file).unwrap_or_default();
    parse_with(name, &text, overrides)
}

/// Returns a file with the values of `overrides` at their paths, whatever [`patched`] finds wrong with it; `None` if a value or path is none at
/// all.
#[must_use]
pub fn unchecked(file: &ConfigFile, overrides: &Overrides) -> Option<ConfigFile> {
    let text = serde_yaml::to_string(file).unwrap_or_default();
    let mut errors = Vec::new();
    let mut root = tree::build(&text, &mut errors).ok()??;
    overrides.patch(&mut root, &mut errors);
    let file = de::read(&mut root, &mut errors)?;
    errors.is_empty().then_some(file)
}

fn parse_with(name: &str, text: &str, overrides: &Overrides) -> Result<Loaded, Report> {
    let place = |severity, lines: &[&str], p: Problem| match overrides.at_line(p.span.line) {
        Some((path, value)) => {
            let what = format!("{path} {value}");
            Diagnostic::of_file(severity, &what, p.message, p.hint)
        }
        None => Diagnostic::new(severity, name, lines, p),
    };
    let ((config, file), warnings) = diagnosed(text, place, |text, errors, warnings| {
        read((text, overrides), errors, warnings)
    })?;
    Ok(Loaded {
        config,
        file,
        warnings,
    })
}

/// Reads a text without its byte order mark by `read`, which collects errors and warnings; `place` gives each its place in the lines.
///
/// # Errors
/// The warnings in the order of the text, then the errors.
pub(crate) fn diagnosed<M>(
    text: &str,
    place: impl Fn(Severity, &[&str], Problem) -> Diagnostic,
    read: impl FnOnce(&str, &mut Vec<Problem>, &mut Vec<Problem>) -> Option<M>,
) -> Result<(M, Vec<Diagnostic>), Report> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let model = read(text, &mut errors, &mut warnings);
    let lines: Vec<&str> = text.lines().collect();
    let place_all = |severity, problems: Vec<Problem>| -> Vec<Diagnostic> {
        let problems = problems.into_iter();
        problems.map(|p| place(severity, &lines, p)).collect()
    };
    let mut found = place_all(Severity::Warning, warnings);
    found.sort_by_key(|one| (one.line(), one.column()));
    match model {
        Some(model) if errors.is_empty() => Ok((model, found)),
        _ => {
            found.extend(place_all(Severity::Error, errors));
            Err(Report::new(found))
        }
    }
}

/// Builds the tree of a text; `message` and `hint` are for one that holds nothing.
pub(crate) fn root(
    text: &str,
    (message, hint): (&str, &str),
    errors: &mut Vec<Problem>,
) -> Option<Node> {
    let start = Span {
        line: 1,
        column: 1,
        length: 1,
    };
    let problem = match tree::build(text, errors) {
        Ok(Some(root)) if !root.is_null() => return Some(root),
        Ok(_) => Problem::new(start, message, hint),
        Err(problem) => problem,
    };
    errors.push(problem);
    None
}

fn read(
    (text, overrides): (&str, &Overrides),
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Option<(Config, ConfigFile)> {
    let empty = (
        "the file holds no configuration",
        "at least `ports:` with a name and a device each is needed",
    );
    let mut root = root(text, empty, errors)?;
    overrides.patch(&mut root, errors);
    let file: ConfigFile = de::read(&mut root, errors)?;
    check::run(&file, &root, errors, warnings);
    errors
        .is_empty()
        .then(|| (Config::resolve(file.clone()), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(text: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        load(&path).unwrap_err().to_string()
    }

    /// A user who may run `check` as root, and nothing else, could read the first line of any file.
    #[test]
    fn of_a_file_that_is_no_configuration_nothing_is_quoted() {
        for secret in [
            "root:$y$j9T$SECRET:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
            "npcc:!::SECRET\n",
            "-----BEGIN SECRET KEY-----\nc2VjcmV0\n-----END SECRET KEY-----\n",
            "password: SECRET\n",
            "- SECRET\n",
            "key = { SECRET\n",
            "transports: SECRET\nreports-ports-: 1\n",
        ] {
            let odd = [secret.as_bytes(), b"\xff"].concat();
            for text in [secret.as_bytes(), &odd] {
                let said = rejection(text);
                assert!(said.contains("holds no configuration"), "{said}");
                assert!(!said.contains("SECRET") && !said.contains('|'), "{said}");
            }
        }
    }

    #[test]
    fn a_configuration_is_quoted_however_it_is_written() {
        for text in ["ports: SEEN\n", "{ \"ports\": SEEN }\n", "ports : SEEN"] {
            assert!(rejection(text.as_bytes()).contains("SEEN"));
        }
        let said = rejection(b"ports: [ { name: d\xe4 } ]\n");
        assert!(
            said.contains(":1:19: error: the file is not UTF-8"),
            "{said}"
        );
    }
}
