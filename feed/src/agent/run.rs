//! Loop of an agent: polls the kernel and publishes leases.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use npcc_api::ends::Lease;
use tokio::time::{MissedTickBehavior, interval};

use super::leases::{Addresses, Leases, of_device};
use super::messages::{LeaseMessage, MOST};
use super::settings::AgentSettings;
use super::socket::RdmaSocket;
use super::wire::{self, Command};
use crate::bus::{BusCounts, ConnectFailure, Link};
use crate::clock::now_us;

/// Time between two reads of the interfaces' addresses.
const ADDRESSES: Duration = Duration::from_secs(5);

/// Reason why an agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The kernel has no RDMA, or refused.
    #[error("the kernel does not list RDMA resources: {0} (modprobe ib_core?)")]
    Kernel(io::Error),
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] ConnectFailure),
}

/// The kernel's RDMA resources, and the addresses of their devices.
struct Host {
    socket: RdmaSocket,
    addresses: Addresses,
    read: Option<Instant>,
}

impl Host {
    fn open() -> Result<Host, AgentError> {
        Ok(Host {
            socket: RdmaSocket::open().map_err(AgentError::Kernel)?,
            addresses: Addresses::new(),
            read: None,
        })
    }

    /// Returns the leases that the host has now.
    fn leases(&mut self) -> io::Result<BTreeSet<Lease>> {
        let fresh = self.read.is_some_and(|read| read.elapsed() < ADDRESSES);
        let all = if fresh { None } else { Some(own_addresses()?) };
        let socket = &mut self.socket;
        let devices = socket.dump(Command::Devices, None, wire::device)?;
        let mut leases = BTreeSet::new();
        for device in &devices {
            let index = Some(device.index);
            if let Some(all) = &all {
                let interfaces = socket.dump(Command::Ports, index, wire::interface)?;
                let of = |name: &String| all.get(name).into_iter().flatten().copied();
                let addresses = interfaces.iter().flat_map(of).collect();
                self.addresses.insert(device.name.clone(), addresses);
            }
            let pairs = socket.dump(Command::QueuePairs, index, wire::queue_pairs)?;
            let ids = socket.dump(Command::CmIds, index, wire::cm_ids)?;
            let own = self
                .addresses
                .get(&device.name)
                .map_or(&[][..], Vec::as_slice);
            leases.extend(of_device(&pairs, &ids, own));
        }
        if all.is_some() {
            self.read = Some(Instant::now());
        }
        Ok(leases)
    }
}

/// Returns the addresses of each interface that hosts elsewhere can use.
fn own_addresses() -> io::Result<Addresses> {
    let mut addresses = Addresses::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        let address = interface.address.as_ref().and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
        });
        if let Some(address) = address.filter(|address| is_usable(*address)) {
            addresses
                .entry(interface.interface_name)
                .or_default()
                .push(address);
        }
    }
    Ok(addresses)
}

/// Returns true if an address can be that of RoCE packets through a switch.
const fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}

/// Returns the leases that the host has now, and the time that the poll took.
///
/// # Errors
/// Fails if the kernel has no RDMA.
pub fn show() -> Result<(BTreeSet<Lease>, Duration), AgentError> {
    let mut host = Host::open()?;
    host.leases().map_err(AgentError::Kernel)?;
    let start = Instant::now();
    let leases = host.leases().map_err(AgentError::Kernel)?;
    Ok((leases, start.elapsed()))
}

/// Runs an agent until `stop`. No failure of the bus ends it.
///
/// # Errors
/// Fails if the kernel has no RDMA or a secret cannot be used.
pub async fn run(
    settings: &AgentSettings,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let mut host = Host::open()?;
    let prefix = format!("npcc.{}.host.{}", settings.site, settings.host);
    let counts = Arc::<BusCounts>::default();
    let link = Link::open(&settings.bus, &prefix, &counts).await?;
    let mut leases = Leases::new(settings.lease_time());
    let started = Instant::now();
    let mut polls = interval(settings.poll_time());
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            () = link.reconnected() => leases.forget(),
            _ = polls.tick() => {
                let present = host.leases().map_err(AgentError::Kernel)?;
                let udp_port = settings.udp_port;
                let present = present.into_iter().map(|lease| Lease { udp_port, ..lease });
                let due = leases.update(started.elapsed(), present);
                publish(settings, &link, &due).await;
            }
        }
    }
    link.close().await;
    Ok(())
}

async fn publish(settings: &AgentSettings, link: &Link, due: &[Lease]) {
    let lease = u64::try_from(settings.lease_time().as_micros()).unwrap_or(u64::MAX);
    let expires = now_us().saturating_add(lease);
    for some in due.chunks(MOST) {
        let message = LeaseMessage::new(settings.host.clone(), expires, some.to_vec());
        link.publish_record(&settings.subject(), &message.encode())
            .await;
    }
}
