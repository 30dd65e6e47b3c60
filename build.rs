//! Version string: the package's and the commit it was built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = Command::new("git")
        .args(["rev-parse", "--short=9", "HEAD"])
        .output();
    let commit = commit.ok().filter(|out| out.status.success());
    let commit = commit.and_then(|out| String::from_utf8(out.stdout).ok());
    let commit = commit.as_deref().map_or("unknown commit", str::trim);
    let package = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=NPCC_VERSION={package} ({commit})");
    println!("cargo:rerun-if-changed=build.rs");
    // Written at every commit and checkout; absent in a source archive.
    let log = ".git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
}
