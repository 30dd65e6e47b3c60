//! What the switch gives away once it runs: system calls and capabilities that only its start needed.
//!
//! It needs much to start: devices, physical memory, namespaces, raw sockets, the sockets' groups. Nothing of that is needed to forward,
//! to follow the kernel, to answer clients or to take a new configuration, so that whoever takes the switch over by a frame or a request
//! finds a process that can start no program, enter no namespace, load nothing that runs and open no raw socket.
//!
//! Law: it holds for every thread, those of DPDK's own included, and for those that come later; it cannot be taken back.

mod calls;

use npcc_config::Config;
use npcc_config::model::Sandbox;
use npcc_config::plan::Device;
use npcc_dpdk::{Capability, keep_capabilities};
use seccompiler::apply_filter_all_threads;

use crate::log::note;

/// What is still needed once all runs.
fn capabilities(config: &Config) -> Vec<Capability> {
    // Links are switched, routes and addresses are Linux's.
    let mut all = vec![Capability::NetAdmin];
    let cards = |device: &Device| matches!(device, Device::Pci { .. });
    if config.ports.iter().any(|port| cards(&port.device)) {
        // A card's queues are made anew when its link is taken up; its memory is pinned.
        all.extend([Capability::NetRaw, Capability::IpcLock]);
    }
    all
}

/// Closes the sandbox around the whole process, unless the configuration says not to. What cannot be had is told, and the switch runs on.
pub fn close(config: &Config) {
    if config.sandbox == Sandbox::Off {
        note(
            "note: the sandbox is off (sandbox): the switch may do all that whoever started it may",
        );
        return;
    }
    let kept = capabilities(config);
    match keep_capabilities(&kept) {
        Ok(()) => {}
        Err(error) => note(&format!(
            "note: capabilities could not be given away: {error}"
        )),
    }
    match calls::filters().and_then(|filters| {
        let mut all = filters.iter();
        all.try_for_each(|filter| apply_filter_all_threads(filter))
            .map_err(|error| error.to_string())
    }) {
        Ok(()) => {
            let names: Vec<&str> = kept.iter().map(|one| one.name()).collect();
            tracing::info!(
                "the sandbox is closed: {} kinds of system call, capabilities {}",
                calls::allowed(),
                names.join(", ")
            );
        }
        Err(why) => note(&format!("note: system calls are not restricted: {why}")),
    }
}
