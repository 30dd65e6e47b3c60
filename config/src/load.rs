//! From a file or a text to a configuration or a report.

use std::path::Path;

use crate::check;
use crate::de;
use crate::diag::{Diagnostic, Problem, Report, Severity};
use crate::model::File;
use crate::patch::Overrides;
use crate::plan::Config;
use crate::retired;
use crate::tree::{self, Span};

/// Larger files are refused unread.
const MAX_BYTES: u64 = 8 << 20;

/// A configuration that can be run, and what the operator should know about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The file it came from, as written, with every default filled in.
    pub file: File,
    /// What it says and does not do, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// Reads and checks a file.
///
/// # Errors
/// Everything that is wrong with it, including that it cannot be read or is not UTF-8.
pub fn load(path: &Path) -> Result<Loaded, Report> {
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
    let unreadable = |e: std::io::Error| {
        let hint = match e.kind() {
            std::io::ErrorKind::NotFound => "check the path given to -c",
            std::io::ErrorKind::PermissionDenied => "make the file readable for this user",
            _ => "check the path and the disk",
        };
        refuse(format!("cannot read the file: {e}"), hint)
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_BYTES {
        let message = format!("the file has {size} bytes, more than {MAX_BYTES}");
        return Err(refuse(message, "is it the right file?"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    match String::from_utf8(bytes) {
        Ok(text) => parse(&name, &text),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&e.as_bytes()[..at]).into_owned();
            let line = before.matches('\n').count() + 1;
            let column = before
                .rsplit('\n')
                .next()
                .unwrap_or_default()
                .chars()
                .count()
                + 1;
            let text = String::from_utf8_lossy(e.as_bytes()).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let span = Span {
                line,
                column,
                length: 1,
            };
            let hint = "save it as UTF-8, or remove the character";
            let problem = Problem::new(span, "the file is not UTF-8 from here on", hint);
            Err(Report::new(vec![Diagnostic::new(
                Severity::Error,
                &name,
                &lines,
                problem,
            )]))
        }
    }
}

/// Checks a text; `name` is what diagnostics call it.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; warnings are among it.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Report> {
    parse_with(name, text, &Overrides::default())
}

/// Checks a file as it would be with these values at their paths.
///
/// # Errors
/// As [`parse`]; what is wrong with a value is said of its path instead of a line.
pub fn patched(name: &str, file: &File, overrides: &Overrides) -> Result<Loaded, Report> {
    // A model always encodes.
    let text = serde_yaml::to_string(file).unwrap_or_default();
    parse_with(name, &text, overrides)
}

fn parse_with(name: &str, text: &str, overrides: &Overrides) -> Result<Loaded, Report> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let config = read((text, overrides), &mut errors, &mut warnings);
    let lines: Vec<&str> = text.lines().collect();
    let place = |severity, problems: Vec<Problem>| -> Vec<Diagnostic> {
        problems
            .into_iter()
            .map(|p| match overrides.at_line(p.span.line) {
                Some((path, value)) => {
                    let what = format!("{path} {value}");
                    Diagnostic::of_file(severity, &what, p.message, p.hint)
                }
                None => Diagnostic::new(severity, name, &lines, p),
            })
            .collect()
    };
    let mut warnings = place(Severity::Warning, warnings);
    warnings.sort_by_key(|w| (w.line(), w.column()));
    match config {
        Some((config, file)) if errors.is_empty() => Ok(Loaded {
            config,
            file,
            warnings,
        }),
        _ => {
            warnings.extend(place(Severity::Error, errors));
            Err(Report::new(warnings))
        }
    }
}

fn read(
    (text, overrides): (&str, &Overrides),
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Option<(Config, File)> {
    let start = Span {
        line: 1,
        column: 1,
        length: 1,
    };
    let mut root = match tree::build(text, errors) {
        Ok(Some(root)) if !root.is_null() => root,
        Ok(_) => {
            let hint = "at least `ports:` with a name and a device each is needed";
            errors.push(Problem::new(start, "the file holds no configuration", hint));
            return None;
        }
        Err(problem) => {
            errors.push(problem);
            return None;
        }
    };
    overrides.apply(&mut root, errors);
    retired::replace(&mut root, warnings);
    let file: File = de::read(&mut root, errors)?;
    check::run(&file, &root, errors, warnings);
    errors
        .is_empty()
        .then(|| (Config::resolve(file.clone()), file))
}
