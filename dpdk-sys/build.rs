//! Build script: finds DPDK through pkg-config, generates the bindings and compiles the shims.
//!
//! Shared linking only: a shared DPDK loads its drivers as plug-ins at run time, so no list of
//! drivers is kept here and none is forced into the binary.
#![allow(
    clippy::print_stdout,
    reason = "cargo reads a build script's standard output"
)]

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bindgen::callbacks::{IntKind, ParseCallbacks};

/// Oldest supported DPDK release (the first with both `rte_dev_name` and rxmode.mtu).
const OLDEST: &str = "22.11";

/// Libraries whose symbols the bindings name. `rte_net_ring` is the driver behind
/// `rte_eth_from_rings`.
const LIBRARIES: [&str; 6] = [
    "rte_eal",
    "rte_ring",
    "rte_mempool",
    "rte_mbuf",
    "rte_ethdev",
    "rte_net_ring",
];

/// Library that contains `rte_log` since 24.03; before, it was part of `rte_eal`.
const LOGGING: &str = "rte_log";

const FUNCTIONS: &[&str] = &[
    "npcc_.*",
    "rte_dev_driver",
    "rte_dev_event_callback_register",
    "rte_dev_name",
    "rte_dev_probe",
    "rte_dev_remove",
    "rte_driver_name",
    "rte_eal_cleanup",
    "rte_eal_get_lcore_state",
    "rte_eal_remote_launch",
    "rte_eal_wait_lcore",
    "rte_eth_call_[rt]x_callbacks",
    "rte_eth_dev_adjust_nb_rx_tx_desc",
    "rte_eth_dev_close",
    "rte_eth_dev_configure",
    "rte_eth_dev_default_mac_addr_set",
    "rte_eth_dev_flow_ctrl_(get|set)",
    "rte_eth_dev_get_dcb_info",
    "rte_eth_dev_info_get",
    "rte_eth_dev_priority_flow_ctrl_(set|queue_configure|queue_info_get)",
    "rte_eth_dev_rx_intr_(ctl_q_get_fd|disable|enable)",
    "rte_eth_dev_set_link_(down|up)",
    "rte_eth_dev_set_mtu",
    "rte_eth_dev_socket_id",
    "rte_eth_dev_start",
    "rte_eth_dev_stop",
    "rte_eth_find_next",
    "rte_eth_from_rings",
    "rte_eth_macaddr_get",
    "rte_eth_promiscuous_(dis|en)able",
    "rte_eth_[rt]x_queue_setup",
    "rte_eth_stats_(get|reset)",
    "rte_get_main_lcore",
    "rte_get_next_lcore",
    "rte_get_tsc_hz",
    "rte_lcore_to_socket_id",
    "rte_log",
    "rte_mempool_(avail|in_use)_count",
    "rte_mempool_free",
    "rte_pktmbuf_free_bulk",
    "rte_pktmbuf_pool_create",
    "rte_ring_count",
    "rte_ring_create",
    "rte_ring_free",
    "rte_strerror",
];

const VARIABLES: &[&str] = &[
    "E(ACCES|AGAIN|ALREADY|BUSY|EXIST|INVAL|NODEV|NOENT|NOMEM|NOSYS|NOTSUP|PERM)",
    "NPCC_(DCB_PFC|RSS_IP_UDP|TX_FAST_FREE)",
    "RING_F_(EXACT_SZ|SC_DEQ|SP_ENQ)",
    "RTE_EAL_PMD_PATH",
    "RTE_ETH_SPEED_NUM_(NONE|UNKNOWN)",
    "RTE_ETH_[RT]X_DESC_.*",
    "RTE_LOGTYPE_USER1",
    "RTE_LOG_(NOTICE|WARNING)",
    "RTE_MAX_ETHPORTS",
    "RTE_MAX_LCORE",
    "RTE_MBUF_F_.*",
    "RTE_PKTMBUF_HEADROOM",
    "rte_eth_fp_ops",
];

/// Types that Rust does not look into, or that are laid out differently from release to release.
const OPAQUE: &[&str] = &[
    "rte_mbuf",
    "rte_mempool",
    "rte_ring",
    "rte_device",
    "rte_driver",
];

#[derive(Debug)]
enum BuildError {
    NoDpdk(pkg_config::Error),
    Flags(std::io::Error),
    Bindings(bindgen::BindgenError),
    Write(std::io::Error),
    Environment(env::VarError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDpdk(why) => write!(
                f,
                "DPDK {OLDEST} or newer was not found by pkg-config (module libdpdk). On Debian or \
                 Ubuntu: apt-get install libdpdk-dev libclang-dev pkg-config. For a private build \
                 of DPDK set PKG_CONFIG_PATH to the folder of its libdpdk.pc. {}",
                said(why)
            ),
            Self::Flags(why) => write!(f, "`pkg-config --cflags libdpdk` could not be run: {why}"),
            Self::Bindings(why) => write!(
                f,
                "the bindings to DPDK could not be generated; is libclang there (Debian: apt-get \
                 install libclang-dev)? bindgen said: {}",
                why.to_string().replace('\n', " ")
            ),
            Self::Write(why) => write!(f, "the bindings could not be written: {why}"),
            Self::Environment(why) => write!(f, "this build script must be run by cargo: {why}"),
        }
    }
}

/// Returns pkg-config's own error output, without the advice of the crate that ran it.
fn said(error: &pkg_config::Error) -> String {
    let text = match error {
        pkg_config::Error::Failure { output, .. }
        | pkg_config::Error::ProbeFailure { output, .. } => {
            String::from_utf8_lossy(&output.stderr).into_owned()
        }
        other => other.to_string(),
    };
    format!(
        "pkg-config said: {}",
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// Gives constants the type of the values they are compared with. By default, bindgen sizes each by its
/// value, so that some of `RTE_MBUF_F_*` would be `u32` and others `u64`.
#[derive(Debug)]
struct ConstantTypes;

impl ParseCallbacks for ConstantTypes {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        if name.starts_with("RTE_MBUF_F_") {
            return Some(IntKind::U64);
        }
        // Error numbers are compared with what C functions return.
        (name.starts_with('E') && name.bytes().all(|b| b.is_ascii_uppercase()))
            .then_some(IntKind::I32)
    }
}

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), BuildError> {
    for file in [
        "build.rs",
        "csrc/wrapper.h",
        "csrc/shim.h",
        "csrc/shim.c",
        "csrc/privileges.c",
        "csrc/interface_mtu.c",
        "csrc/one_by_one.c",
    ] {
        println!("cargo::rerun-if-changed={file}");
    }
    let dpdk = pkg_config::Config::new()
        .atleast_version(OLDEST)
        .cargo_metadata(false)
        .probe("libdpdk")
        .map_err(BuildError::NoDpdk)?;
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(BuildError::Environment)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(BuildError::Environment)?);
    let flags = compiler_flags()?;

    bindings(
        &root.join("csrc/wrapper.h"),
        &out.join("bindings.rs"),
        &flags,
    )?;
    let mut shim = cc::Build::new();
    shim.file(root.join("csrc/shim.c"))
        .file(root.join("csrc/privileges.c"))
        .file(root.join("csrc/interface_mtu.c"))
        .file(root.join("csrc/one_by_one.c"))
        .include(root.join("csrc"))
        .warnings(true);
    for flag in &flags {
        shim.flag(flag);
    }
    shim.compile("npcc_dpdk_shim");

    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    let logs = dpdk.libs.iter().any(|library| library == LOGGING);
    for library in LIBRARIES.into_iter().chain(logs.then_some(LOGGING)) {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    println!("cargo::rustc-env=NPCC_DPDK_VERSION={}", dpdk.version);
    println!("cargo::metadata=version={}", dpdk.version);
    if let Ok(libdir) = pkg_config::get_variable("libdpdk", "libdir") {
        println!("cargo::metadata=libdir={libdir}");
    }
    if let Some(drivers) = driver_dir(&dpdk.include_paths) {
        println!("cargo::metadata=driver_dir={drivers}");
    }
    Ok(())
}

/// Returns all compiler flags of DPDK. The pkg-config crate keeps only `-I` and `-D`, but the headers need
/// `-include rte_config.h` and the `-march` that their inline functions were written for.
fn compiler_flags() -> Result<Vec<String>, BuildError> {
    println!("cargo::rerun-if-env-changed=PKG_CONFIG");
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = Command::new(program)
        .args(["--cflags", "libdpdk"])
        .output()
        .map_err(BuildError::Flags)?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(str::to_owned)
        .collect())
}

fn bindings(header: &Path, to: &Path, flags: &[String]) -> Result<(), BuildError> {
    let mut builder = bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_args(flags)
        .parse_callbacks(Box::new(ConstantTypes))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .use_core()
        .generate_comments(false)
        .prepend_enum_name(false)
        .generate_cstr(true)
        .derive_default(true)
        .allowlist_recursively(true);
    for name in FUNCTIONS {
        builder = builder.allowlist_function(name);
    }
    for name in VARIABLES {
        builder = builder.allowlist_var(name);
    }
    builder = builder.allowlist_type("npcc_mbuf_offset");
    for name in OPAQUE {
        builder = builder.opaque_type(name);
    }
    builder
        .generate()
        .map_err(BuildError::Bindings)?
        .write_to_file(to)
        .map_err(BuildError::Write)
}

/// Returns the folder in which this DPDK looks for its drivers: `RTE_EAL_PMD_PATH`, as compiled into it.
fn driver_dir(include_paths: &[PathBuf]) -> Option<String> {
    include_paths.iter().find_map(|dir| {
        let text = std::fs::read_to_string(dir.join("rte_build_config.h")).ok()?;
        let line = text
            .lines()
            .find(|line| line.contains("RTE_EAL_PMD_PATH"))?;
        Some(line.split('"').nth(1)?.to_owned())
    })
}
