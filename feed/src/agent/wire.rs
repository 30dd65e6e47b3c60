//! RDMA netlink, as in Linux's `include/uapi/rdma/rdma_netlink.h`: requests for devices, ports, queue pairs and CM IDs, and their answers.
//!
//! All numbers are in host byte order, but the ports in socket addresses, which are not read.

use std::net::IpAddr;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NlasIterator,
    parse_string, parse_u32,
};

/// Client of RDMA netlink that reports devices (`RDMA_NL_NLDEV`), in the upper bits of a message's type.
const NLDEV: u16 = 5 << 10;

/// Command of `RDMA_NL_NLDEV`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Devices.
    Devices = 1,
    /// Ports of a device.
    Ports = 5,
    /// Queue pairs of a device.
    QueuePairs = 10,
    /// CM IDs of a device.
    CmIds = 11,
}

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const RES_QP: u16 = 19;
const RES_QP_ENTRY: u16 = 20;
const RES_LQPN: u16 = 21;
const RES_RQPN: u16 = 22;
const RES_TYPE: u16 = 26;
const RES_STATE: u16 = 27;
const RES_CM_ID: u16 = 30;
const RES_CM_ID_ENTRY: u16 = 31;
const RES_SRC_ADDR: u16 = 33;
const RES_DST_ADDR: u16 = 34;
const NDEV_NAME: u16 = 51;

/// `IB_QPT_RC` and `IB_QPT_UC`.
const CONNECTED: [u8; 2] = [2, 3];
/// `IB_QPS_RTR` to `IB_QPS_SQD`: the partner is known, and packets may pass.
const USABLE: std::ops::RangeInclusive<u8> = 2..=4;

/// Device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Index of the device.
    pub index: u32,
    /// Name of the device.
    pub name: String,
}

/// Connected queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePair {
    /// Number of the queue pair, from 2, 24 bits.
    pub local: u32,
    /// Number of the partner's queue pair, from 2, 24 bits.
    pub remote: u32,
}

/// Connection of the RDMA connection manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CmId {
    /// Queue pair of the connection.
    pub queue_pair: u32,
    /// Address of the host.
    pub source: IpAddr,
    /// Address of its partner.
    pub destination: IpAddr,
}

/// Returns the request for everything of a command, of one device.
pub(super) fn request(command: Command, device: Option<u32>, sequence: u32) -> Vec<u8> {
    let device = device.map(|index| DefaultNla::new(DEV_INDEX, index.to_ne_bytes().to_vec()));
    let (start, attributes) = (NetlinkHeader::default().buffer_len(), device.as_slice());
    let length = start + attributes.buffer_len();
    let mut message = NetlinkBuffer::new(vec![0; length]);
    message.set_length(u32::try_from(length).unwrap_or_default());
    message.set_message_type(NLDEV | command as u16);
    message.set_flags(NLM_F_REQUEST | NLM_F_DUMP);
    message.set_sequence_number(sequence);
    attributes.emit(&mut message.buffer[start..]);
    message.into_inner()
}

/// Returns true if a message's type is that of an answer to the command.
pub(super) const fn answers(kind: u16, command: Command) -> bool {
    kind == NLDEV | command as u16
}

/// Iterates over the messages of a buffer, up to the first that is truncated.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(bytes).ok()?;
        let end = (message.length() as usize).next_multiple_of(4);
        bytes = bytes.get(end..).unwrap_or_default();
        Some(message)
    })
}

/// Iterates over attributes, up to the first that is truncated.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let whole = NlasIterator::new(bytes).map_while(Result::ok);
    whole.map(|attribute| {
        let kind = attribute.kind();
        let length = attribute.value_length();
        let value = attribute.into_inner().get(4..4 + length);
        (kind, value.unwrap_or_default())
    })
}

/// Reads a `sockaddr_storage`.
fn address(value: &[u8]) -> Option<IpAddr> {
    let family = value.first_chunk().copied().map(u16::from_ne_bytes)?;
    let found = match family {
        2 => IpAddr::from(*value.get(4..)?.first_chunk::<4>()?),
        10 => IpAddr::from(*value.get(8..)?.first_chunk::<16>()?),
        _ => return None,
    };
    (!found.is_unspecified()).then_some(found)
}

/// Reads a device from the body of a message.
#[must_use]
pub fn device(body: &[u8]) -> Option<Device> {
    let (mut index, mut name) = (None, None);
    for (kind, value) in attributes(body) {
        match kind {
            DEV_INDEX => index = parse_u32(value).ok(),
            DEV_NAME => name = parse_string(value).ok(),
            _ => {}
        }
    }
    Some(Device {
        index: index?,
        name: name?,
    })
}

/// Reads the name of a port's network interface.
#[must_use]
pub fn interface(body: &[u8]) -> Option<String> {
    let (_, name) = attributes(body).find(|(kind, _)| *kind == NDEV_NAME)?;
    parse_string(name).ok()
}

/// Iterates over the entries of a table in the body of a message.
fn entries(body: &[u8], table: u16, entry: u16) -> impl Iterator<Item = &[u8]> {
    let tables = attributes(body).filter(move |(kind, _)| *kind == table);
    let entries = tables.flat_map(|(_, value)| attributes(value));
    entries.filter_map(move |(kind, value)| (kind == entry).then_some(value))
}

/// Reads the connected queue pairs of a message.
#[must_use]
pub fn queue_pairs(body: &[u8]) -> Vec<QueuePair> {
    let entries = entries(body, RES_QP, RES_QP_ENTRY);
    entries.filter_map(queue_pair).collect()
}

fn queue_pair(entry: &[u8]) -> Option<QueuePair> {
    let (mut local, mut remote, mut kind_of, mut state) = (None, None, None, None);
    for (kind, value) in attributes(entry) {
        match kind {
            RES_LQPN => local = parse_u32(value).ok(),
            RES_RQPN => remote = parse_u32(value).ok(),
            RES_TYPE => kind_of = value.first().copied(),
            RES_STATE => state = value.first().copied(),
            _ => {}
        }
    }
    let usable = CONNECTED.contains(&kind_of?) && USABLE.contains(&state?);
    let in_range = |number: u32| (2..=0xff_ffff).contains(&number).then_some(number);
    usable.then_some(QueuePair {
        local: in_range(local?)?,
        remote: in_range(remote?)?,
    })
}

/// Reads the CM IDs of a message that have a queue pair and both addresses.
#[must_use]
pub fn cm_ids(body: &[u8]) -> Vec<CmId> {
    let entries = entries(body, RES_CM_ID, RES_CM_ID_ENTRY);
    entries.filter_map(cm_id).collect()
}

fn cm_id(entry: &[u8]) -> Option<CmId> {
    let (mut queue_pair, mut source, mut destination) = (None, None, None);
    for (kind, value) in attributes(entry) {
        match kind {
            RES_LQPN => queue_pair = parse_u32(value).ok(),
            RES_SRC_ADDR => source = address(value),
            RES_DST_ADDR => destination = address(value),
            _ => {}
        }
    }
    Some(CmId {
        queue_pair: queue_pair?,
        source: source?,
        destination: destination?,
    })
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
