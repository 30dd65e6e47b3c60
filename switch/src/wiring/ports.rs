//! Opening the configured ports.

use std::sync::Arc;

use npcc_config::{Config, plan};
use npcc_dpdk::{Eal, Mempool, Port, PortConfig, PortError, RxQueue, TxQueue};
use npcc_pipeline::units::{BitRate, Mac};

/// A port could not be brought up.
#[derive(Debug, thiserror::Error)]
#[error("port {name}")]
pub struct OpenError {
    name: String,
    #[source]
    source: PortError,
}

/// A running port.
#[derive(Debug)]
pub struct OpenPort {
    /// The device, for statistics.
    pub port: Arc<Port>,
    /// Its only receive queue.
    pub rx: RxQueue,
    /// Its only transmit queue.
    pub tx: TxQueue,
    /// Its address.
    pub mac: Mac,
    /// The rate its egress side is shaped to, if any.
    pub rate: Option<BitRate>,
}

/// Opens, configures and starts all ports, in the order of the configuration.
///
/// # Errors
/// The first port that fails, with what to do.
pub fn open(eal: &Eal, config: &Config, pool: &Mempool) -> Result<Vec<OpenPort>, OpenError> {
    config
        .ports
        .iter()
        .map(|port| {
            open_one(eal, port, pool).map_err(|source| OpenError {
                name: port.name.clone(),
                source,
            })
        })
        .collect()
}

fn open_one(eal: &Eal, config: &plan::Port, pool: &Mempool) -> Result<OpenPort, PortError> {
    let mut port = Port::open_by_device(eal, &config.device.to_string())?;
    port.configure(
        &PortConfig {
            mtu: config.mtu,
            ..PortConfig::default()
        },
        pool,
    )?;
    let mac = match config.mac {
        Some(mac) => {
            // A virtual device may not take an address; the pipeline compares with ours all the same.
            match port.set_mac(mac.0) {
                Err(error) if !error.is_unsupported() => return Err(error),
                _ => Mac(mac.0),
            }
        }
        None => Mac(port.mac()?),
    };
    port.start()?;
    let rate = match config.speed {
        Some(speed) => Some(BitRate(speed.bits_per_second())),
        None => link_rate(&port)?,
    };
    Ok(OpenPort {
        rx: port.rx_queue(0)?,
        tx: port.tx_queue(0)?,
        mac,
        rate,
        port: Arc::new(port),
    })
}

/// 99.9 % of a physical link, so that queues form in ours and not in the device's ring. What a vdev reports means nothing.
fn link_rate(port: &Port) -> Result<Option<BitRate>, PortError> {
    if port.is_vdev() {
        return Ok(None);
    }
    Ok(port
        .link()?
        .speed_mbps
        .map(|mbps| BitRate(u64::from(mbps) * 999_000)))
}
