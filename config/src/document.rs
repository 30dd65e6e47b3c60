//! Other YAML files of the project: any model, with the same diagnostics as the switch's configuration.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::de;
use crate::diag::{Diagnostic, Problem, Report};
use crate::load::{diagnosed, root, text};
use crate::tree::{Node, Path as Way, Seg};

/// Model that was read, with warnings in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<T> {
    /// Model.
    pub model: T,
    /// Settings that are accepted but have no or limited effect.
    pub warnings: Vec<Diagnostic>,
}

/// Findings of the checks of a model, by path of the value, such as `bus.servers.0`.
#[derive(Debug)]
pub struct Findings<'a> {
    root: &'a Node,
    errors: &'a mut Vec<Problem>,
    warnings: &'a mut Vec<Problem>,
}

impl Findings<'_> {
    /// Reports an error in the value at `path`, or in the nearest key that is written.
    pub fn error(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let problem = self.problem(path, message, hint);
        self.errors.extend(problem);
    }

    /// Reports a value that has no or limited effect.
    pub fn warn(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let problem = self.problem(path, message, hint);
        self.warnings.extend(problem);
    }

    /// Returns the problem, unless the value was already refused for its form.
    fn problem(
        &self,
        path: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Option<Problem> {
        let seg = |step: &str| {
            let key = || Seg::Key(step.to_owned());
            step.parse().map_or_else(|_| key(), Seg::Index)
        };
        let way = Way::from(path.split('.').map(seg).collect::<Vec<_>>());
        let certain = self.root.is_certain(&way);
        certain.then(|| Problem::new(self.root.place(&way), message, hint))
    }
}

/// Reads and checks a regular file. `key` is a key that every such file has: no line is quoted of a file without it.
///
/// # Errors
/// Everything that is wrong with it, including that it cannot be read or is not UTF-8.
pub fn load<T: DeserializeOwned>(
    path: &Path,
    key: &str,
    check: impl FnOnce(&T, &mut Findings<'_>),
) -> Result<Document<T>, Report> {
    let hint = format!("at least `{key}:` is needed: is it the right file?");
    let text = text(path, key, &hint)?;
    parse(&path.display().to_string(), &text, check)
}

/// Checks a text; `name` is its name in diagnostics.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; warnings are among it.
pub fn parse<T: DeserializeOwned>(
    name: &str,
    text: &str,
    check: impl FnOnce(&T, &mut Findings<'_>),
) -> Result<Document<T>, Report> {
    let place = |severity, lines: &[&str], problem| Diagnostic::new(severity, name, lines, problem);
    let (model, warnings) = diagnosed(text, place, |text, errors, warnings| {
        let mut root = root(text, ("the file is empty", "is it the right file?"), errors)?;
        let model = de::read(&mut root, errors)?;
        let mut findings = Findings {
            root: &root,
            errors,
            warnings,
        };
        check(&model, &mut findings);
        Some(model)
    })?;
    Ok(Document { model, warnings })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Model {
        name: String,
        #[serde(default)]
        list: Vec<u32>,
    }

    fn check(model: &Model, found: &mut Findings<'_>) {
        for (at, number) in model.list.iter().enumerate() {
            if *number > 9 {
                found.error(
                    &format!("list.{at}"),
                    format!("{number} is too large"),
                    "9 at most",
                );
            }
        }
        if model.name.is_empty() {
            found.warn("name", "the name is empty", "");
        }
    }

    #[test]
    fn every_mistake_of_form_and_of_sense_has_its_place() {
        let text = "name: ''\nlist: [1, 12, x]\nlits: 3\n";
        let said = parse("a.yaml", text, check).unwrap_err().to_string();
        assert!(
            said.contains("a.yaml:3:1: error: unknown key `lits`"),
            "{said}"
        );
        assert!(
            said.contains("a.yaml:2:11: error: 12 is too large"),
            "{said}"
        );
        assert!(said.contains("a.yaml:2:15: error:"), "{said}");
        assert!(
            said.contains("a.yaml:1:7: warning: the name is empty"),
            "{said}"
        );
        assert!(said.contains("3 errors, 1 warning"), "{said}");
        let good = parse("a.yaml", "name: b\n", check).unwrap();
        assert_eq!((good.model.name.as_str(), good.model.list.len()), ("b", 0));
    }

    #[test]
    fn of_a_file_without_the_key_nothing_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "root:SECRET:0\n").unwrap();
        let said = load(&path, "name", check).unwrap_err().to_string();
        assert!(
            said.contains("holds no configuration") && !said.contains("SECRET"),
            "{said}"
        );
        std::fs::write(&path, "name: SEEN\nx: 1\n").unwrap();
        assert!(
            load(&path, "name", check)
                .unwrap_err()
                .to_string()
                .contains("x: 1")
        );
    }
}
