//! Compares a transcript of a driver's answers with its profile, and prints each difference: `replay PROFILE TRANSCRIPT DESCRIPTORS`.
//! DESCRIPTORS is the number that the device's transmit ring has.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "differences are printed")]

use std::process::ExitCode;

use npcc_card::{Profile, transcript};

fn differences() -> Result<Vec<String>, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, descriptors] = &words[..] else {
        return Err("usage: replay PROFILE TRANSCRIPT DESCRIPTORS".to_owned());
    };
    let profile = Profile::named(name).ok_or_else(|| format!("no profile {name}"))?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let descriptors = descriptors
        .parse()
        .map_err(|error| format!("{descriptors}: {error}"))?;
    transcript::differences(&text, &profile, descriptors)
}

fn main() -> ExitCode {
    match differences() {
        Ok(differences) if differences.is_empty() => ExitCode::SUCCESS,
        Ok(differences) => {
            println!("{}", differences.join("\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
