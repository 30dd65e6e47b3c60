//! Valid RoCEv2 traffic made from a few numbers: for generators, tests and `bench`.
//!
//! Connection `i` runs from a sender to a receiver, with a queue pair of its own at each end and the UDP source port Linux
//! gives them (the symmetric hash), so that a switch can tell which sender and receiver belong together. Frames are whole: sequence
//! numbers go on by one, the ICRC and every checksum are right. The same numbers give the same bytes.

mod checksum;

use std::net::IpAddr;

use npcc_pipeline::bits::mix;
use npcc_pipeline::craft::{BthFields, Craft};
use npcc_pipeline::units::{Mac, Priority};
use npcc_roce::build::{CnpHeader, CnpSpec, Vlan};
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::port_hash::port_of;

npcc_pipeline::named! {
    /// Operation of a step: the frames it sends.
    pub enum Operation {
        /// RDMA WRITE ONLY frame, with RETH.
        Write = "write",
        /// SEND ONLY frame.
        Send = "send",
        /// READ REQUEST from the receiver of the data, and its READ RESPONSE ONLY.
        Read = "read",
        /// ACK of the connection's last packet.
        Ack = "ack",
        /// CNP of the receiver itself.
        Cnp = "cnp",
    }
}

impl Operation {
    /// Returns the octets between BTH and payload of the frames whose size is chosen.
    const fn extended(self) -> usize {
        match self {
            Operation::Write => 16,
            Operation::Read => 4,
            Operation::Send | Operation::Ack | Operation::Cnp => 0,
        }
    }

    const fn carries_data(self) -> bool {
        matches!(self, Operation::Write | Operation::Send | Operation::Read)
    }
}

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Direction of the data.
    Forward,
    /// Opposite direction: ACK, CNP, READ REQUEST.
    Back,
}

/// Parameters of the traffic.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Number of connections.
    pub qps: usize,
    /// Operations in turn; repetition gives an operation more weight.
    pub operations: Vec<Operation>,
    /// Lengths of data frames without FCS, in bytes, in turn.
    pub sizes: Vec<usize>,
    /// Senders of the data; connections are distributed round-robin.
    pub senders: Vec<IpAddr>,
    /// Receivers of the data; connections are distributed round-robin.
    pub receivers: Vec<IpAddr>,
    /// Source MAC address of all frames.
    pub src_mac: Mac,
    /// Destination MAC address of all frames: the switch's.
    pub dst_mac: Mac,
    /// VLAN id, if tagged.
    pub vlan: Option<u16>,
    /// DSCP of data, requests and ACKs; CNPs carry 48.
    pub dscp: u8,
    /// ECN field of all but CNPs: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Seed: the same seed gives the same frames.
    pub seed: u64,
}

/// Reason why the traffic cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrafficError {
    /// A list is empty.
    #[error("no {0}: name at least one")]
    Empty(&'static str),
    /// The number of connections is out of range.
    #[error("{0} connections: write 1 to 1048576")]
    Connections(usize),
    /// The addresses are of different families.
    #[error("{0} and {1} are of different families")]
    Families(IpAddr, IpAddr),
    /// A frame of this operation cannot have this size.
    #[error("a {operation} frame of {size} bytes: write {least} to 9216, in steps of 4")]
    Size {
        /// Name of the operation.
        operation: &'static str,
        /// Requested size.
        size: usize,
        /// Smallest possible size.
        least: usize,
    },
    /// A field is out of range.
    #[error("{what} {value}: write {low} to {high}")]
    Range {
        /// Name of the field.
        what: &'static str,
        /// Requested value.
        value: u64,
        /// Smallest value allowed.
        low: u64,
        /// Largest value allowed.
        high: u64,
    },
}

/// One end-to-end connection.
#[derive(Debug, Clone, Copy)]
struct Connection {
    sender: IpAddr,
    receiver: IpAddr,
    sender_qp: Qpn,
    receiver_qp: Qpn,
    port: u16,
    psn: u32,
    request_psn: u32,
}

/// Mask of a sequence number: 24 bits.
const PSN_MASK: u32 = 0xff_ffff;
/// First queue pair of senders, and of receivers below: far apart, so that a wrong one shows.
const SENDER_QP: u32 = 0x10_0000;
const RECEIVER_QP: u32 = 0x20_0000;

impl Traffic {
    /// Returns the octets of the headers and the ICRC of a frame.
    fn overhead(&self, operation: Operation) -> usize {
        let tag = if self.vlan.is_some() { 4 } else { 0 };
        let ip = if self.senders.iter().any(IpAddr::is_ipv6) {
            40
        } else {
            20
        };
        14 + tag + ip + 8 + 12 + operation.extended() + 4
    }

    /// Checks that the traffic can be made.
    ///
    /// # Errors
    /// [`TrafficError`]: the first problem found.
    pub fn check(&self) -> Result<(), TrafficError> {
        for (what, none) in [
            ("operation", self.operations.is_empty()),
            ("frame size", self.sizes.is_empty()),
            ("sender", self.senders.is_empty()),
            ("receiver", self.receivers.is_empty()),
        ] {
            if none {
                return Err(TrafficError::Empty(what));
            }
        }
        if !(1..=1 << 20).contains(&self.qps) {
            return Err(TrafficError::Connections(self.qps));
        }
        let hosts = || self.senders.iter().chain(&self.receivers);
        if let Some(first) = self.senders.first()
            && let Some(other) = hosts().find(|host| host.is_ipv6() != first.is_ipv6())
        {
            return Err(TrafficError::Families(*first, *other));
        }
        for (what, value, low, high) in [
            ("VLAN", u64::from(self.vlan.unwrap_or(1)), 1, 4094),
            ("DSCP", u64::from(self.dscp), 0, 63),
            ("ECN field", u64::from(self.ecn), 0, 3),
        ] {
            if !(low..=high).contains(&value) {
                return Err(TrafficError::Range {
                    what,
                    value,
                    low,
                    high,
                });
            }
        }
        for operation in Operation::ALL {
            if !operation.carries_data() || !self.operations.contains(&operation) {
                continue;
            }
            let least = self.overhead(operation);
            let bad = |size: &&usize| {
                **size < least || **size > 9216 || !(**size - least).is_multiple_of(4)
            };
            if let Some(size) = self.sizes.iter().find(bad) {
                return Err(TrafficError::Size {
                    operation: operation.name(),
                    size: *size,
                    least,
                });
            }
        }
        Ok(())
    }

    fn connections(&self) -> Vec<Connection> {
        let senders = self.senders.iter().cycle();
        let hosts = senders.zip(self.receivers.iter().cycle());
        (0u32..)
            .zip(hosts)
            .take(self.qps)
            .map(|(n, (sender, receiver))| {
                let random = mix(self.seed ^ u64::from(n));
                let (sender_qp, receiver_qp) = (Qpn::new(SENDER_QP + n), Qpn::new(RECEIVER_QP + n));
                let [a, b, c, d, e, f, ..] = random.to_le_bytes();
                Connection {
                    sender: *sender,
                    receiver: *receiver,
                    sender_qp,
                    receiver_qp,
                    port: port_of(sender_qp, receiver_qp),
                    psn: u32::from_le_bytes([a, b, c, 0]),
                    request_psn: u32::from_le_bytes([d, e, f, 0]),
                }
            })
            .collect()
    }

    /// Yields the frames of `steps` steps: every connection takes its turn at an operation before the next one.
    /// Senders repeat if there are fewer of them than receivers, and the other way round.
    ///
    /// # Errors
    /// Errors of [`Traffic::check`].
    pub fn frames(
        &self,
        steps: usize,
    ) -> Result<impl Iterator<Item = (Way, Vec<u8>)> + '_, TrafficError> {
        self.check()?;
        let mut connections = self.connections();
        let mut data = 0;
        Ok((0..steps).flat_map(move |step| {
            let operation = self.operations[(step / self.qps) % self.operations.len()];
            let size = self.sizes[data % self.sizes.len()];
            data += usize::from(operation.carries_data());
            let connection = &mut connections[step % self.qps];
            self.step(connection, operation, size, step)
        }))
    }

    fn step(
        &self,
        connection: &mut Connection,
        operation: Operation,
        size: usize,
        step: usize,
    ) -> Vec<(Way, Vec<u8>)> {
        let payload = size.saturating_sub(self.overhead(operation));
        let fill = mix(self.seed ^ step as u64).to_le_bytes();
        let data = fill.into_iter().cycle().take(payload);
        match operation {
            Operation::Write => {
                let mut body = Vec::from([0; 8]);
                body.extend(fill.get(..4).unwrap_or_default());
                body.extend(u32::try_from(payload).unwrap_or(u32::MAX).to_be_bytes());
                body.extend(data);
                vec![self.forward(connection, 0x0a, body)]
            }
            Operation::Send => vec![self.forward(connection, 0x04, data.collect())],
            Operation::Read => {
                let psn = connection.request_psn;
                connection.request_psn = psn.wrapping_add(1) & PSN_MASK;
                let mut reth = Vec::from([0; 12]);
                reth.extend(u32::try_from(payload).unwrap_or(u32::MAX).to_be_bytes());
                let request = self.back(connection, 0x0c, psn, reth);
                let aeth = [0x1f, 0, 0, 1].into_iter();
                let response = self.frame(
                    connection,
                    Way::Forward,
                    0x10,
                    psn,
                    aeth.chain(data).collect(),
                );
                vec![request, (Way::Forward, response)]
            }
            Operation::Ack => {
                let last = connection.psn.wrapping_sub(1) & PSN_MASK;
                vec![self.back(connection, 0x11, last, vec![0x1f, 0, 0, 1])]
            }
            Operation::Cnp => vec![(Way::Back, self.cnp(connection))],
        }
    }

    fn forward(&self, connection: &mut Connection, opcode: u8, body: Vec<u8>) -> (Way, Vec<u8>) {
        let psn = connection.psn;
        connection.psn = psn.wrapping_add(1) & PSN_MASK;
        (
            Way::Forward,
            self.frame(connection, Way::Forward, opcode, psn, body),
        )
    }

    fn back(&self, connection: &Connection, opcode: u8, psn: u32, body: Vec<u8>) -> (Way, Vec<u8>) {
        (
            Way::Back,
            self.frame(connection, Way::Back, opcode, psn, body),
        )
    }

    fn cnp(&self, connection: &Connection) -> Vec<u8> {
        let spec = CnpSpec {
            flow: FlowKey::new(
                connection.sender,
                connection.receiver,
                connection.receiver_qp,
            ),
            sender_qpn: connection.sender_qp,
            // The CNP comes from the far side by way of the switch's other port.
            dst_mac: self.dst_mac,
            src_mac: self.src_mac,
            vlan: self.vlan.map(|id| Vlan {
                id,
                pcp: Priority::new(6),
            }),
            ip_id: 0,
            header: CnpHeader::default(),
        };
        spec.build().bytes().to_vec()
    }

    fn frame(
        &self,
        connection: &Connection,
        way: Way,
        opcode: u8,
        psn: u32,
        payload: Vec<u8>,
    ) -> Vec<u8> {
        let Connection {
            sender,
            receiver,
            sender_qp,
            receiver_qp,
            port,
            ..
        } = *connection;
        let (src, dst, dest_qp) = match way {
            Way::Forward => (sender, receiver, receiver_qp),
            Way::Back => (receiver, sender, sender_qp),
        };
        let craft = Craft {
            dst_mac: self.dst_mac,
            src_mac: self.src_mac,
            tags: self.vlan.into_iter().collect(),
            tos: self.dscp << 2 | self.ecn,
            src_port: port,
            bth: Some(BthFields {
                opcode,
                dest_qp: dest_qp.get(),
                psn,
                ack_req: matches!(opcode, 0x04 | 0x0a),
                becn: false,
            }),
            payload,
            ..Craft::roce(src, dst, opcode, 0, 0)
        };
        let frame = craft.frame();
        if src.is_ipv6() {
            checksum::seal(frame, self.vlan.is_some())
        } else {
            frame
        }
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
