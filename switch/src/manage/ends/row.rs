//! Rows of ends, as JSON: what `show ends` writes and `pair suggest` reads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::export::{CmKind, Row, SeenEnd};
use npcc_roce::pair::foreign::{HOLDS, RefusedEnd, Report, ReportedEnd};
use npcc_roce::pair::port_hash::port_of;
use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use npcc_engine::control::pairs::{self, is_one_host};

/// Row: a line of JSON. Times are microseconds since 1970; unknown keys are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EndRow {
    /// Beginning of a snapshot.
    Begin,
    /// End of a snapshot, and the number of its ends.
    Complete {
        /// Number of ends since the beginning.
        count: u64,
    },
    /// Reverse traffic that was seen.
    End(EndFields),
    /// Message of the connection manager.
    Cm(CmFields),
    /// End that was forgotten, or whose connection ended.
    Gone {
        /// Source of its frames.
        from: IpAddr,
        /// Destination of its frames.
        to: IpAddr,
        /// Queue pair that they name.
        queue_pair: u32,
        /// UDP source port of its frames.
        udp_port: u16,
    },
    /// Rows that were overwritten before they were read. A new snapshot follows.
    Lost {
        /// Number of them since the beginning of the connection.
        count: u64,
    },
    /// Queue pair that a host's agent knows, with its partner.
    Lease(LeaseFields),
}

/// Reverse traffic: frames from one host to another, which name a queue pair of the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFields {
    /// Source of the frames.
    pub from: IpAddr,
    /// Destination of the frames: the host that might be signalled.
    pub to: IpAddr,
    /// Queue pair that they name.
    pub queue_pair: u32,
    /// UDP source port of the frames.
    pub udp_port: u16,
    /// Transport of the queue pair: `rc`, `uc` or `ud`.
    pub transport: String,
    /// Time of the first frame.
    pub first_seen: u64,
    /// Time of the last frame.
    pub last_seen: u64,
    /// Number of frames.
    pub packets: u64,
    /// Sequence number that the last frame acknowledged, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_psn: Option<u32>,
    /// Time of that acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<u64>,
}

/// Message of the connection manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CmFields {
    /// Name of the message: `req`, `rep` or `dreq`.
    pub message: String,
    /// Source of the message.
    pub from: IpAddr,
    /// Destination of the message.
    pub to: IpAddr,
    /// Communication ID of its source.
    pub local_comm_id: u32,
    /// Communication ID of its destination; 0 in a REQ.
    pub remote_comm_id: u32,
    /// Queue pair of its source; in a DREQ that of its destination.
    pub queue_pair: u32,
    /// Time of the message.
    pub at: u64,
}

/// Queue pair of a host, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseFields {
    /// Address of the host.
    pub to: IpAddr,
    /// Address of its peer, if the host knows it.
    #[serde(default)]
    pub from: Option<IpAddr>,
    /// Queue pair of the host.
    pub queue_pair: u32,
    /// Queue pair of the peer.
    pub remote_queue_pair: u32,
    /// UDP source port of their packets; without it, the hash of both queue pairs.
    #[serde(default)]
    pub udp_port: Option<u16>,
    /// Time at which the lease ends.
    pub expires: u64,
}

/// Speaker of reported rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Another box, which reports what it saw.
    Box,
    /// A host's agent, which reports its own queue pairs.
    Host,
}

impl EndRow {
    /// Returns the row of an exported record; `None` for a mark that is not shown.
    #[must_use]
    pub fn of(row: &Row, calendar: &Calendar) -> Option<EndRow> {
        Some(match row {
            Row::End(end) => EndRow::End(EndFields::of(end, calendar)),
            Row::Gone(key, port) => EndRow::Gone {
                from: key.src(),
                to: key.dst(),
                queue_pair: key.dest_qp().get(),
                udp_port: *port,
            },
            Row::Cm(kind, key, [local, remote], at) => EndRow::Cm(CmFields {
                message: match kind {
                    CmKind::Req => "req",
                    CmKind::Rep => "rep",
                    CmKind::Dreq => "dreq",
                }
                .to_owned(),
                from: key.src(),
                to: key.dst(),
                local_comm_id: *local,
                remote_comm_id: *remote,
                queue_pair: key.dest_qp().get(),
                at: calendar.micros(*at),
            }),
            Row::Walked(_) => return None,
        })
    }

    /// Returns the report that a row makes.
    ///
    /// # Errors
    /// Says why the row is none that this speaker may make.
    pub fn report(&self, speaker: Speaker, calendar: &Calendar) -> Result<Report, RefusedEnd> {
        match (self, speaker) {
            (EndRow::End(end), Speaker::Box) => end.report().map(Report::Seen),
            (
                EndRow::Gone {
                    from,
                    to,
                    queue_pair,
                    udp_port,
                },
                Speaker::Box,
            ) => Ok(Report::Gone(key(*from, *to, *queue_pair)?, *udp_port)),
            (EndRow::Lease(lease), Speaker::Host) => lease.report(calendar).map(Report::Seen),
            _ => Err(RefusedEnd::Unsupported),
        }
    }
}

impl EndFields {
    fn of(end: &SeenEnd, calendar: &Calendar) -> EndFields {
        let last_seen = calendar.micros(end.last_seen);
        EndFields {
            from: end.key.src(),
            to: end.key.dst(),
            queue_pair: end.key.dest_qp().get(),
            udp_port: end.udp_port,
            transport: end.transport.name().to_owned(),
            first_seen: calendar.micros(end.first_seen),
            last_seen,
            packets: end.packets,
            acked_psn: end.acked_psn,
            acked_at: end.acked_psn.map(|_| last_seen),
        }
    }

    fn report(&self) -> Result<ReportedEnd, RefusedEnd> {
        if self.transport != "rc" {
            return Err(RefusedEnd::Unsupported);
        }
        // The peer's clock is not used: the report holds from its arrival.
        Ok(ReportedEnd {
            key: key(self.from, self.to, self.queue_pair)?,
            udp_port: self.udp_port,
            partner: None,
            holds: HOLDS,
        })
    }
}

impl LeaseFields {
    fn report(&self, calendar: &Calendar) -> Result<ReportedEnd, RefusedEnd> {
        let partner = queue_pair(self.remote_queue_pair)?;
        let sender = queue_pair(self.queue_pair)?;
        let key = match self.from {
            Some(from) => key(from, self.to, self.queue_pair)?,
            None if is_one_host(self.to) => FlowKey::new(unspecified(self.to), self.to, sender),
            None => return Err(RefusedEnd::Malformed),
        };
        Ok(ReportedEnd {
            key,
            udp_port: self.udp_port.unwrap_or_else(|| port_of(sender, partner)),
            partner: Some(partner),
            holds: calendar.left(self.expires).ok_or(RefusedEnd::Expired)?,
        })
    }
}

/// Returns the unspecified address of the same family.
const fn unspecified(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Returns a queue pair of a connection.
fn queue_pair(number: u32) -> Result<Qpn, RefusedEnd> {
    pairs::qpn(number).map_err(|_| RefusedEnd::Malformed)
}

/// Returns the key of frames between two hosts of one family to a queue pair.
fn key(from: IpAddr, to: IpAddr, number: u32) -> Result<FlowKey, RefusedEnd> {
    let key = pairs::key_of_hosts(from, to, number);
    key.map_err(|_| RefusedEnd::Malformed)
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
