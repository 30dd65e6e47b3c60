//! Number of cases that a property is tried with.

use proptest::test_runner::Config;

/// Returns a configuration of `usual` cases, or of as many as `PROPTEST_CASES` says, which `with_cases` ignores.
pub(crate) fn cases(usual: u32) -> Config {
    let config = Config::default();
    let is_given = std::env::var_os("PROPTEST_CASES").is_some();
    Config {
        cases: if is_given { config.cases } else { usual },
        ..config
    }
}
