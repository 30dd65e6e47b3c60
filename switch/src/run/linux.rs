//! Linux integration while the parts are made: each worker's share of it, and the thread that remains.

use std::sync::Arc;

use anyhow::Context;
use npcc_config::Config;
use npcc_linux::Integration;
use npcc_linux::netlink::ahead::Ahead;
use npcc_pipeline::punt::{Punt, PuntConfig, PuntHost};
use npcc_pipeline::units::Mac;

use crate::saved::SavedState;
use crate::wiring::kernel::Kernel;
use crate::wiring::{self, ports::OpenPort};
use npcc_engine::linux_io::{self, FromHost, HostInterface, LinuxIo, ToHost, ToWorker};
use npcc_engine::sleep::Wakers;
use npcc_engine::worker::frame::Datapath;
use npcc_engine::worker::from_linux::FromLinux;

/// Linux integration under construction, before all workers have their share of it.
pub(super) struct LinuxSide {
    punt: PuntConfig,
    interfaces: Vec<HostInterface>,
    punted: Vec<PuntHost>,
    to_workers: Vec<ToWorker>,
}

impl LinuxSide {
    /// Opens an interface for each port and VLAN, and the kernel's routes; `None` where Linux is not integrated.
    pub(super) fn of(
        config: &Config,
        ports: &[OpenPort],
        saved: &SavedState,
        ahead: Option<Ahead>,
    ) -> anyhow::Result<Option<(LinuxSide, Integration)>> {
        let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
        let Some(punt) = wiring::punt::config(config, &macs) else {
            return Ok(None);
        };
        let (interfaces, integration) = wiring::hosts::open(config, ports, saved, ahead)?;
        let side = LinuxSide {
            punt,
            interfaces,
            punted: Vec::new(),
            to_workers: Vec::new(),
        };
        Ok(Some((side, integration)))
    }

    /// Makes the next worker's share, and attaches the punt path to its datapath.
    pub(super) fn worker(&mut self, path: &mut Datapath, seed: u64) -> FromLinux {
        let (punt, host) = Punt::new(self.punt.clone(), seed);
        let (to_worker, frames) = linux_io::ring();
        self.punted.push(host);
        self.to_workers.push(to_worker);
        path.attach_punt(punt);
        FromLinux::new(frames)
    }

    /// Makes the thread between the workers and Linux from what remains. `owners` names the worker of each port; `kernel` resolves next
    /// hops.
    pub(super) fn io(
        self,
        owners: &[usize],
        kernel: &Kernel,
        wakers: Option<Arc<Wakers>>,
    ) -> anyhow::Result<LinuxIo> {
        let kernel = kernel.handle().clone();
        let to_host = ToHost::new(
            self.punted,
            Box::new(move |ask| kernel.resolve(ask.port, ask.vlan, ask.destination)),
        );
        let stats = to_host.stats();
        let from_host = FromHost::new(self.interfaces, owners.to_vec(), self.to_workers, stats);
        let from_host = from_host.context("cannot wait for Linux's interfaces")?;
        Ok(LinuxIo {
            to_host,
            from_host: from_host.waking(wakers),
        })
    }
}
