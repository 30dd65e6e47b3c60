//! Transport of a queue pair.

use npcc_pipeline::wire::bth::{RoceClass, is_uc};

use crate::cm::message::Service;
use crate::sample::PacketSample;

/// Transport of the queue pair that packets name. A number is that of one queue pair, of one transport: a number in use with two is suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagrams.
    Ud,
}

impl Transport {
    /// Name in rows for other programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Rc => "rc",
            Transport::Uc => "uc",
            Transport::Ud => "ud",
        }
    }

    /// Transport of a packet's queue pair; `None` for a CNP, which may go to any.
    pub(crate) const fn of(record: &PacketSample) -> Option<Transport> {
        match record.class {
            RoceClass::Cnp => None,
            RoceClass::Datagram => Some(Transport::Ud),
            _ => Some(Transport::of_connection(is_uc(record.opcode))),
        }
    }

    /// Transport of a connection's queue pair: UC if `uc`, else RC.
    pub(crate) const fn of_connection(uc: bool) -> Transport {
        if uc { Transport::Uc } else { Transport::Rc }
    }

    /// Transport of a connection that is requested; `None` for one that is not paired.
    pub(crate) const fn of_service(service: Service) -> Option<Transport> {
        match service {
            Service::Rc => Some(Transport::Rc),
            Service::Uc => Some(Transport::Uc),
            Service::Other => None,
        }
    }

    /// Returns true for unreliable connection.
    pub(crate) const fn is_uc(self) -> bool {
        matches!(self, Transport::Uc)
    }

    /// Returns true for unreliable datagrams.
    pub(crate) const fn is_ud(self) -> bool {
        matches!(self, Transport::Ud)
    }
}
