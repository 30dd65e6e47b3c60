//! Network namespace for this process and its children: veth pairs, the switch's ends for `net_af_packet`, ours as packet sockets. It is
//! gone with the last of these processes.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

/// Longest frame that passes, in bytes.
pub(super) const FRAME: usize = 9_000;
/// IP MTU of the links, in bytes.
pub(super) const MTU: u16 = 4_200;
/// Size of a socket's buffers for frames that arrive while this process waits for a core, in bytes.
const ROOM: usize = 64 << 20;

/// This process's ends of the wires.
#[derive(Debug)]
pub(super) struct Wires {
    sockets: Vec<OwnedFd>,
    /// Number of frames the kernel refused.
    pub(super) refused: u64,
}

/// Returns the interface name of the switch's end of wire `index`.
#[must_use]
pub(super) fn device(index: usize) -> String {
    format!("npcc{index}")
}

impl Wires {
    /// Moves the process from the machine's network to an empty one with `count` wires. Call it before the process has other threads.
    ///
    /// # Errors
    /// This process lacks the privilege (it is not root), or `ip` is missing.
    pub(super) fn new(count: usize) -> anyhow::Result<Wires> {
        unshare(CloneFlags::CLONE_NEWNET)
            .context("cannot make a network namespace: run as root")?;
        // Only the scenario's frames may pass.
        let quiet = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        if std::path::Path::new(quiet).exists() {
            std::fs::write(quiet, "1").context("cannot switch IPv6 autoconfiguration off")?;
        }
        for index in 0..count {
            let (outer, inner) = (device(index), inside(index));
            ip(&format!(
                "link add {outer} mtu {MTU} type veth peer name {inner} mtu {MTU}"
            ))?;
            ip(&format!("link set {outer} up"))?;
            ip(&format!("link set {inner} up"))?;
        }
        let sockets = (0..count).map(|index| open(&inside(index)));
        Ok(Wires {
            sockets: sockets.collect::<anyhow::Result<_>>()?,
            refused: 0,
        })
    }

    /// Sends a frame to the switch.
    pub(super) fn send(&mut self, port: u8, frame: &[u8]) {
        let Some(socket) = self.sockets.get(usize::from(port)) else {
            return;
        };
        // A refused frame is lost, as on a wire; the connection repeats it and the report says so.
        if send(socket.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT).is_err() {
            self.refused += 1;
        }
    }

    /// Returns the next frame the switch sent by this port; `None` if there is none.
    ///
    /// # Errors
    /// The wire is gone.
    pub(super) fn receive<'a>(
        &self,
        port: u8,
        buffer: &'a mut [u8; FRAME],
    ) -> anyhow::Result<Option<&'a [u8]>> {
        let Some(socket) = self.sockets.get(usize::from(port)) else {
            return Ok(None);
        };
        match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(len) => Ok(buffer.get(..len)),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => Ok(None),
            Err(error) => Err(error).context("a wire to the switch broke"),
        }
    }

    /// Waits until a frame is there or the time is over.
    pub(super) fn wait(&self, time: Duration) {
        let mut all: Vec<PollFd<'_>> = self
            .sockets
            .iter()
            .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
            .collect();
        // A signal ends the wait early, which is no harm.
        let _ = ppoll(&mut all, Some(TimeSpec::from_duration(time)), None);
    }

    /// Returns the number of wires.
    #[must_use]
    pub(super) fn count(&self) -> u8 {
        u8::try_from(self.sockets.len()).unwrap_or(u8::MAX)
    }
}

fn inside(index: usize) -> String {
    format!("host{index}")
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .context("cannot run `ip`: install iproute2")?;
    if !output.status.success() {
        bail!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Opens a packet socket on one interface.
fn open(name: &str) -> anyhow::Result<OwnedFd> {
    let address = getifaddrs()
        .context("cannot list interfaces")?
        .filter(|interface| interface.interface_name == name)
        .find_map(|interface| interface.address?.as_link_addr().copied());
    let address: LinkAddr = address.with_context(|| format!("{name} has no link address"))?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )
    .context("cannot open a packet socket: run as root")?;
    bind(socket.as_raw_fd(), &address).with_context(|| format!("cannot bind to {name}"))?;
    setsockopt(&socket, sockopt::RcvBufForce, &ROOM).context("cannot get room to receive")?;
    setsockopt(&socket, sockopt::SndBufForce, &ROOM).context("cannot get room to send")?;
    Ok(socket)
}
