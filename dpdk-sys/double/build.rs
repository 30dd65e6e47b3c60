//! Build script: compiles the C side against DPDK's driver headers, which `scripts/cards` puts under `target/`.
//!
//! Without them the library has no bus and is of no use; it is built all the same, so that the workspace builds on every machine.
#![allow(
    clippy::print_stdout,
    reason = "cargo reads a build script's standard output"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the C side.
const SOURCES: [&str; 8] = [
    "bus.c", "burst.c", "ethdev.c", "flow.c", "probe.c", "queues.c", "report.c", "wire.c",
];

/// Libraries whose functions the C side calls.
const LIBRARIES: [&str; 5] = [
    "rte_eal",
    "rte_ethdev",
    "rte_kvargs",
    "rte_mbuf",
    "rte_mempool",
];

/// Library that contains `rte_log` since 24.03; before, it was part of `rte_eal`.
const LOGGING: &str = "rte_log";

fn main() {
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("../../target/dpdk-source/current");
    println!("cargo::rerun-if-changed={}", source.display());
    let Ok(dpdk) = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libdpdk")
    else {
        return;
    };
    if !source.join("lib/ethdev/ethdev_driver.h").is_file() {
        return;
    }
    let mut build = cc::Build::new();
    for file in SOURCES {
        build.file(root.join("csrc").join(file));
    }
    for flag in compiler_flags() {
        build.flag(flag);
    }
    // Behind the installed headers, which these complete.
    for folder in ["lib/ethdev", "lib/eal/include"] {
        build.flag("-idirafter");
        build.flag(source.join(folder));
    }
    build
        .define("ALLOW_INTERNAL_API", None)
        .define("ALLOW_EXPERIMENTAL_API", None)
        .warnings(true)
        .flag("-Wno-deprecated-declarations")
        .cargo_metadata(false)
        .compile("npcc_double");
    link(&dpdk);
}

/// Links all of the C side, whose constructors nobody refers to.
fn link(dpdk: &pkg_config::Library) {
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let archive = Path::new(&out).join("libnpcc_double.a");
    println!("cargo::rustc-link-arg-cdylib=-Wl,--whole-archive");
    println!("cargo::rustc-link-arg-cdylib={}", archive.display());
    println!("cargo::rustc-link-arg-cdylib=-Wl,--no-whole-archive");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-arg-cdylib=-L{}", path.display());
    }
    let logs = dpdk.libs.iter().any(|library| library == LOGGING);
    for library in LIBRARIES.into_iter().chain(logs.then_some(LOGGING)) {
        println!("cargo::rustc-link-arg-cdylib=-l{library}");
    }
}

/// Returns all compiler flags of DPDK, see dpdk-sys/build.rs.
fn compiler_flags() -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "libdpdk"])
        .output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&text)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}
