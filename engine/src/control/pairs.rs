//! Pairs that an operator names by addresses and numbers, and their conversion to commands of the control core.

use std::net::IpAddr;

use npcc_api::pairs::ListedPair;
use npcc_cnp::control::command::{ControlCommand, Refused};
use npcc_roce::key::{FlowKey, Qpn};

/// Converts a pair to a command of the control core; a pair that is only `suggested` must be confirmed by packets.
///
/// # Errors
/// Says which field is invalid.
pub fn pair_command(
    pair: &ListedPair,
    suggested: bool,
) -> Result<ControlCommand, ControlCommandError> {
    let flow = key_of_hosts(pair.src, pair.dst, pair.dest_qp)?;
    let sender = qpn(pair.sender_qp)?;
    Ok(if suggested {
        ControlCommand::SuggestPair { flow, sender }
    } else {
        ControlCommand::AddPair { flow, sender }
    })
}

/// Returns the command that deletes the pair of the packets between two hosts to a queue pair.
///
/// # Errors
/// Says which field is invalid.
pub fn delete_command(
    src: IpAddr,
    dst: IpAddr,
    dest_qp: u32,
) -> Result<ControlCommand, ControlCommandError> {
    let flow = key(src, dst, dest_qp)?;
    Ok(ControlCommand::DeletePair { flow })
}

/// Returns a queue pair that may be an endpoint of a connection.
pub const fn qpn(number: u32) -> Result<Qpn, ControlCommandError> {
    match number {
        2..=0x00ff_ffff => Ok(Qpn::new(number)),
        _ => Err(ControlCommandError::QueuePair(number)),
    }
}

/// Returns true if an address may be an endpoint of a connection.
pub const fn is_one_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !broadcast
}

/// Returns the key of packets between two addresses, each of one host, to a queue pair.
pub fn key_of_hosts(
    src: IpAddr,
    dst: IpAddr,
    dest_qp: u32,
) -> Result<FlowKey, ControlCommandError> {
    hosts(src, dst)?;
    key(src, dst, dest_qp)
}

/// Checks that these addresses may be the two ends of a connection.
pub(crate) fn hosts(src: IpAddr, dst: IpAddr) -> Result<(), ControlCommandError> {
    for address in [src, dst] {
        if !is_one_host(address) {
            return Err(ControlCommandError::Address(address));
        }
    }
    same_family(src, dst)
}

/// Checks that two addresses are of one family.
fn same_family(src: IpAddr, dst: IpAddr) -> Result<(), ControlCommandError> {
    if src.is_ipv4() != dst.is_ipv4() {
        return Err(ControlCommandError::Families(src, dst));
    }
    Ok(())
}

/// Returns the key of packets between two addresses to a queue pair.
fn key(src: IpAddr, dst: IpAddr, dest_qp: u32) -> Result<FlowKey, ControlCommandError> {
    same_family(src, dst)?;
    Ok(FlowKey::new(src, dst, qpn(dest_qp)?))
}

/// Reason why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlCommandError {
    /// A queue pair's number has 24 bits.
    #[error("{0} is no queue pair: write 2 to 16777215")]
    QueuePair(u32),
    /// A connection has two addresses of one family.
    #[error("{0} and {1} are no two ends of a connection: write two IPv4 or two IPv6 addresses")]
    Families(IpAddr, IpAddr),
    /// The address is a group's or no host's.
    #[error("{0} is not the address of one host: a connection has two hosts")]
    Address(IpAddr),
    /// The control core did not take it in time.
    #[error("the control core does not listen")]
    TimedOut,
    /// The control core took it, and did not answer in time.
    #[error(
        "the control core took the command and does not answer; look whether it holds (show npcc)"
    )]
    Silent,
    /// The control core refused it.
    #[error(transparent)]
    Refused(#[from] Refused),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_said() {
        let pair = delete_command([10, 0, 1, 3].into(), [10, 0, 2, 2].into(), 1 << 24);
        assert_eq!(pair, Err(ControlCommandError::QueuePair(1 << 24)));
    }

    #[test]
    fn a_connection_has_two_addresses_of_one_family() {
        let mixed = ListedPair {
            src: [10, 0, 1, 3].into(),
            dst: std::net::Ipv6Addr::LOCALHOST.into(),
            dest_qp: 0x11,
            sender_qp: 0x18,
        };
        let refused = pair_command(&mixed, false).unwrap_err();
        assert_eq!(refused, ControlCommandError::Families(mixed.src, mixed.dst));
    }

    /// A list once gave a multicast group as a sender, and CNPs would have gone there.
    #[test]
    fn a_connection_is_between_two_hosts() {
        let host: IpAddr = [10, 0, 1, 3].into();
        let v6: IpAddr = "2001:db8::3".parse().unwrap();
        let pair = |src, dst| ListedPair {
            src,
            dst,
            dest_qp: 0x11,
            sender_qp: 0x18,
        };
        for (other, host) in [
            ("224.0.0.9", host),
            ("239.1.2.3", host),
            ("0.0.0.0", host),
            ("255.255.255.255", host),
            ("ff02::1", v6),
            ("::", v6),
            ("::ffff:224.0.0.9", v6),
        ] {
            let other: IpAddr = other.parse().unwrap();
            for suggested in [false, true] {
                for pair in [pair(other, host), pair(host, other)] {
                    let refused = pair_command(&pair, suggested);
                    assert_eq!(refused, Err(ControlCommandError::Address(other)));
                }
            }
        }
        assert!(pair_command(&pair(host, [10, 0, 2, 2].into()), false).is_ok());
        // A pair that was accepted before can still be deleted.
        assert!(delete_command([224, 0, 0, 9].into(), host, 0x11).is_ok());
    }
}
