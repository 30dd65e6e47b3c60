//! Rows of ends, from what this box exports and to what it takes from others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use npcc_api::ends::{Cm, CmKind, End, EndRow, Key, ReportedLease, Transport};
use npcc_api::peers::PeerName;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair;
use npcc_roce::pair::export::{self, Row, SeenEnd};
use npcc_roce::pair::foreign::{HOLDS, RefusedEnd, Report, ReportedEnd};
use npcc_roce::pair::port_hash::port_of;

use super::calendar::Calendar;
use npcc_engine::control::pairs::{self, is_one_host};

/// Returns the row of an exported record; `None` for a mark that is not shown.
#[must_use]
pub fn of(row: &Row, calendar: &Calendar) -> Option<EndRow> {
    Some(match row {
        Row::End(end) => EndRow::End(of_end(end, calendar)),
        Row::Gone(key, port) => EndRow::Gone(Key {
            from: key.src(),
            to: key.dst(),
            queue_pair: key.dest_qp().get(),
            udp_port: *port,
        }),
        Row::Cm(kind, key, [local, remote], at) => EndRow::Cm(Cm {
            message: match kind {
                export::CmKind::Req => CmKind::Req,
                export::CmKind::Rep => CmKind::Rep,
                export::CmKind::Dreq => CmKind::Dreq,
            },
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

fn of_end(end: &SeenEnd, calendar: &Calendar) -> End {
    let last_seen = calendar.micros(end.last_seen);
    End {
        from: end.key.src(),
        to: end.key.dst(),
        queue_pair: end.key.dest_qp().get(),
        udp_port: end.udp_port,
        transport: match end.transport {
            pair::Transport::Rc => Transport::Rc,
            pair::Transport::Uc => Transport::Uc,
            pair::Transport::Ud => Transport::Ud,
        },
        first_seen: calendar.micros(end.first_seen),
        last_seen,
        packets: end.packets,
        acked_psn: end.acked_psn,
        acked_at: end.acked_psn.map(|_| last_seen),
    }
}

/// Returns the report that a row makes.
///
/// # Errors
/// Says why the row is none that this peer may make.
pub fn report(row: &EndRow, by: &PeerName, calendar: &Calendar) -> Result<Report, RefusedEnd> {
    match (row, by) {
        (EndRow::End(end), PeerName::Peer(_)) => seen(end).map(Report::Seen),
        (EndRow::Gone(gone), PeerName::Peer(_)) => Ok(Report::Gone(
            key(gone.from, gone.to, gone.queue_pair)?,
            gone.udp_port,
        )),
        (EndRow::Lease(lease), PeerName::Host(_)) => leased(lease, calendar).map(Report::Seen),
        _ => Err(RefusedEnd::Unsupported),
    }
}

fn seen(end: &End) -> Result<ReportedEnd, RefusedEnd> {
    if end.transport != Transport::Rc {
        return Err(RefusedEnd::Unsupported);
    }
    // The peer's clock is not used: the report holds from its arrival.
    Ok(ReportedEnd {
        key: key(end.from, end.to, end.queue_pair)?,
        udp_port: end.udp_port,
        partner: None,
        holds: HOLDS,
    })
}

fn leased(reported: &ReportedLease, calendar: &Calendar) -> Result<ReportedEnd, RefusedEnd> {
    let lease = &reported.lease;
    let partner = queue_pair(lease.remote_queue_pair)?;
    let sender = queue_pair(lease.queue_pair)?;
    let key = match lease.from {
        Some(from) => key(from, lease.to, lease.queue_pair)?,
        None if is_one_host(lease.to) => FlowKey::new(unspecified(lease.to), lease.to, sender),
        None => return Err(RefusedEnd::Malformed),
    };
    Ok(ReportedEnd {
        key,
        udp_port: lease
            .udp_port
            .map_or_else(|| port_of(sender, partner), NonZeroU16::get),
        partner: Some(partner),
        holds: calendar.left(reported.expires).ok_or(RefusedEnd::Expired)?,
    })
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
