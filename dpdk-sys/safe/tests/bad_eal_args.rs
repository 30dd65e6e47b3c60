//! EAL refuses bad arguments with a typed error, and cannot be started a second time.

mod common;

use npcc_dpdk::{Eal, EalError};

#[test]
fn bad_arguments_are_an_error_and_not_an_exit() {
    let nul = Eal::init(&["a\0b".to_owned()]).unwrap_err();
    assert!(matches!(nul, EalError::NulInArgument { .. }), "{nul}");

    let error = Eal::init(&common::eal_args(&["--no-such-option"])).unwrap_err();
    assert!(matches!(error, EalError::BadArguments { .. }), "{error}");
    assert!(error.to_string().contains("--no-such-option"), "{error}");

    let again = Eal::init(&common::eal_args(&[])).unwrap_err();
    assert_eq!(again, EalError::AlreadyInitialised);
}
