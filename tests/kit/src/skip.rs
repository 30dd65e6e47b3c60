//! Skipped tests: each is reported, and fails where everything is to be tested.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Reports that `name` is not tested on this machine because it needs `need`.
///
/// The line goes to standard output and to the file that `NPCC_SKIPS` names, from which `scripts/test` prints it at its end.
///
/// # Panics
///
/// Panics if `CI` is `true` and the comma-separated list `NPCC_SKIP` does not hold `name`.
#[allow(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what is wrong by panicking"
)]
pub fn skipped(name: &str, need: &str) {
    println!("skipped: {name} needs {need}");
    if let Some(path) = std::env::var_os("NPCC_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let written =
            file.and_then(|mut file| file.write_all(format!("{name}\t{need}\n").as_bytes()));
        if let Err(error) = written {
            panic!("cannot write to the file of NPCC_SKIPS: {error}");
        }
    }
    let ci = std::env::var("CI").ok();
    let allowed = std::env::var("NPCC_SKIP").unwrap_or_default();
    if let Some(text) = complaint(name, need, ci.as_deref(), &allowed) {
        panic!("{text}");
    }
}

/// Returns the failure text of a skip; `None` where it may be skipped.
fn complaint(name: &str, need: &str, ci: Option<&str>, allowed: &str) -> Option<String> {
    let fails = ci == Some("true") && !allowed.split(',').any(|one| one == name);
    fails.then(|| {
        format!("{name} was not tested: it needs {need}. Provide it, or set NPCC_SKIP={name}")
    })
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn a_skip_fails_in_ci_unless_it_is_named() {
        let fails = |ci, allowed| complaint("page", "chromium", ci, allowed).is_some();
        assert!(!fails(None, "") && !fails(Some("false"), ""));
        assert!(fails(Some("true"), "") && fails(Some("true"), "pages,pag"));
        assert!(!fails(Some("true"), "guests,page"));
    }
}
