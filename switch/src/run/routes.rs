//! Opening of the route table, with the file or the kernel as its owner.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use npcc_config::Config;
use npcc_config::ipnet::IpNet;
use npcc_linux::Integration;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::units::Mac;

use crate::wiring::kernel::Kernel;
use crate::wiring::live_routes::LiveRoutes;
use crate::wiring::routes::Readers;
use crate::wiring::{self, ports::OpenPort};

/// Owner of the route table (file or kernel), and the table's readers: the workers, and the control core for its CNPs and to locate
/// sources.
pub(super) struct Routes {
    /// Routes of the configuration file; `None` where Linux is integrated.
    pub(super) by_file: Option<LiveRoutes>,
    /// Routes of the kernel; `None` where Linux is not integrated.
    pub(super) kernel: Option<Kernel>,
    pub(super) down: Arc<DownPorts>,
    pub(super) workers: Vec<FibReader>,
    pub(super) control: FibReader,
    pub(super) sources: FibReader,
}

/// Opens the route table, with a reader for each worker and two for the control core.
pub(super) fn routes(
    config: &Config,
    ports: &[OpenPort],
    integration: Option<Integration>,
    more: &[IpNet],
) -> anyhow::Result<Routes> {
    let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
    let Readers {
        writer,
        workers,
        control,
        sources,
    } = wiring::routes::readers(config, &macs)?;
    let down = writer.down_ports();
    let (by_file, kernel) = match integration {
        None => (
            Some(wiring::routes::by_file(writer, config, &macs, more)?),
            None,
        ),
        Some(_) if !more.is_empty() => {
            return Err(anyhow!(
                "the routes are Linux's (linux.integrate): put a file of prefixes there with `ip -batch`"
            ));
        }
        Some(integration) => {
            let kernel = Kernel::follow(integration, writer).context("cannot follow the kernel")?;
            (None, Some(kernel))
        }
    };
    Ok(Routes {
        by_file,
        kernel,
        down,
        workers,
        control,
        sources,
    })
}
