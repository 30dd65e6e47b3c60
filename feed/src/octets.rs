//! Octets of rows for hashes that two boxes compare.

use std::net::IpAddr;

use npcc_api::ends::{End, Key};

/// Value with the same octets in every version and on every machine, for hashes that two boxes compare.
pub(crate) trait Octets {
    /// Passes the octets to `write`, in order.
    fn each(&self, write: &mut impl FnMut(&[u8]));
}

impl Octets for IpAddr {
    fn each(&self, write: &mut impl FnMut(&[u8])) {
        match self {
            IpAddr::V4(address) => {
                write(&[4]);
                write(&address.octets());
            }
            IpAddr::V6(address) => {
                write(&[6]);
                write(&address.octets());
            }
        }
    }
}

impl Octets for Key {
    fn each(&self, write: &mut impl FnMut(&[u8])) {
        self.from.each(write);
        self.to.each(write);
        write(&self.queue_pair.to_le_bytes());
        write(&self.udp_port.to_le_bytes());
    }
}

impl Octets for End {
    fn each(&self, write: &mut impl FnMut(&[u8])) {
        self.key().each(write);
        write(self.transport.name().as_bytes());
        for number in [self.first_seen, self.last_seen, self.packets] {
            write(&number.to_le_bytes());
        }
        for option in [self.acked_psn.map(u64::from), self.acked_at] {
            write(&[u8::from(option.is_some())]);
            write(&option.unwrap_or(0).to_le_bytes());
        }
    }
}
