//! Order of CNPs: an operator names sender, receiver and queue pair, and CNPs leave whatever NPCC knows or decides.

use std::net::IpAddr;
use std::time::Duration;

use npcc_roce::key::{FlowKey, Qpn};
use serde::{Deserialize, Serialize};

use super::inject::InjectorCommand;
use super::pairs::{ControlCommandError, hosts, qpn};

/// Most CNPs of one order.
pub const MOST: u32 = 1_000;
/// Time between two CNPs of an order: far above a card's own interval, so that each counts, and 1,000 take a second.
pub const GAP: Duration = Duration::from_millis(1);

/// Order of CNPs, as it goes over the management socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CnpOrder {
    /// Address of the host that is to slow down: the CNPs' destination.
    pub to: IpAddr,
    /// Address of the other end of the connection: the CNPs' source.
    pub from: IpAddr,
    /// Queue pair at `to`.
    pub queue_pair: u32,
    /// Number of CNPs, 1 to [`MOST`].
    pub count: u32,
}

impl CnpOrder {
    /// Converts it to the injector's command for one of its CNPs.
    ///
    /// # Errors
    /// Says which field is invalid.
    pub fn command(&self) -> Result<InjectorCommand, ControlCommandError> {
        hosts(self.to, self.from)?;
        Ok(InjectorCommand::Send {
            hosts: FlowKey::new(self.to, self.from, Qpn::new(0)),
            queue_pair: qpn(self.queue_pair)?,
        })
    }

    /// Checks the number of CNPs.
    ///
    /// # Errors
    /// Says which numbers are allowed.
    pub fn check_count(&self) -> Result<(), String> {
        match self.count {
            1..=MOST => Ok(()),
            count => Err(format!(
                "{count} CNPs at a time are not sent: write 1 to {MOST}"
            )),
        }
    }

    /// Returns its name for the log of changes.
    #[must_use]
    pub fn name(&self) -> String {
        let CnpOrder {
            to,
            from,
            queue_pair,
            count,
        } = self;
        format!("cnp send --to {to} --from {from} --qp {queue_pair:#x} --count {count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_two_hosts_of_one_family_a_queue_pair_of_24_bits_and_a_bounded_number() {
        let order = CnpOrder {
            to: [10, 0, 1, 3].into(),
            from: [10, 0, 2, 2].into(),
            queue_pair: 0x18,
            count: MOST,
        };
        assert!(order.command().is_ok() && order.check_count().is_ok());
        let v6: IpAddr = "2001:db8::2".parse().unwrap();
        let group: IpAddr = [224, 0, 0, 9].into();
        let with = |order: CnpOrder| order.command().unwrap_err();
        assert_eq!(
            with(CnpOrder { from: v6, ..order }),
            ControlCommandError::Families(order.to, v6)
        );
        assert_eq!(
            with(CnpOrder { to: group, ..order }),
            ControlCommandError::Address(group)
        );
        for queue_pair in [0, 1, 1 << 24] {
            let odd = CnpOrder {
                queue_pair,
                ..order
            };
            assert_eq!(with(odd), ControlCommandError::QueuePair(queue_pair));
        }
        for count in [0, MOST + 1] {
            let why = CnpOrder { count, ..order }.check_count().unwrap_err();
            assert!(why.contains("1 to 1000"), "{why}");
        }
    }
}
