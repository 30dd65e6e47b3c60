//! EAL refuses bad arguments with a typed error, and cannot be started a second time.

mod common;

use npcc_dpdk::{Eal, EalError};

/// Last line of the test below.
const END: &str = "EAL has refused";

#[test]
fn the_usage_is_not_printed_over_the_error() {
    let own = std::env::current_exe().unwrap();
    let mut again = std::process::Command::new(own);
    again.args([
        "--exact",
        "bad_arguments_are_an_error_and_not_an_exit",
        "--nocapture",
    ]);
    let output = again.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && out.contains(END), "{out}{err}");
    assert!(!out.contains("Usage") && !out.contains("--lcores"), "{out}");
    assert!(err.contains("no-such-option"), "{err}");
}

#[test]
fn bad_arguments_are_an_error_and_not_an_exit() {
    let nul = Eal::init(&["a\0b".to_owned()]).unwrap_err();
    assert!(matches!(nul, EalError::NulInArgument { .. }), "{nul}");

    let error = Eal::init(&common::eal_args(&["--no-such-option"])).unwrap_err();
    assert!(matches!(error, EalError::BadArguments { .. }), "{error}");
    assert!(error.to_string().contains("--no-such-option"), "{error}");

    // On stdout, after the lines of the test's harness.
    println!("{END}");
    let again = Eal::init(&common::eal_args(&[])).unwrap_err();
    assert_eq!(again, EalError::AlreadyInitialised);
}
