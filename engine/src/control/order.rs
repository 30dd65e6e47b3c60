//! Order of CNPs: an operator names sender, receiver and queue pair, and CNPs leave whatever NPCC knows or decides.

use std::time::Duration;

use npcc_api::cnps::{CnpOrder, MOST};
use npcc_roce::key::{FlowKey, Qpn};

use super::inject::InjectorCommand;
use super::pairs::{ControlCommandError, hosts, qpn};

/// Time between two CNPs of an order: far above a card's own interval, so that each counts, and 1,000 take a second.
pub const GAP: Duration = Duration::from_millis(1);

/// Converts an order to the injector's command for one of its CNPs.
///
/// # Errors
/// Says which field is invalid.
pub fn command(order: &CnpOrder) -> Result<InjectorCommand, ControlCommandError> {
    hosts(order.to, order.from)?;
    Ok(InjectorCommand::Send {
        hosts: FlowKey::new(order.to, order.from, Qpn::new(0)),
        queue_pair: qpn(order.queue_pair)?,
    })
}

/// Checks the number of CNPs.
///
/// # Errors
/// Says which numbers are allowed.
pub fn check_count(order: &CnpOrder) -> Result<(), String> {
    match order.count {
        1..=MOST => Ok(()),
        count => Err(format!(
            "{count} CNPs at a time are not sent: write 1 to {MOST}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn an_order_names_two_hosts_of_one_family_a_queue_pair_of_24_bits_and_a_bounded_number() {
        let order = CnpOrder {
            to: [10, 0, 1, 3].into(),
            from: [10, 0, 2, 2].into(),
            queue_pair: 0x18,
            count: MOST,
        };
        assert!(command(&order).is_ok() && check_count(&order).is_ok());
        let v6: IpAddr = "2001:db8::2".parse().unwrap();
        let group: IpAddr = [224, 0, 0, 9].into();
        let with = |order: CnpOrder| command(&order).unwrap_err();
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
            let why = check_count(&CnpOrder { count, ..order }).unwrap_err();
            assert!(why.contains("1 to 1000"), "{why}");
        }
    }
}
