//! Start of a device that obeys pause by itself, with a transmit queue per priority.
//!
//! Law: a device that lacks the calls is configured once and started once. The calls are tried while it is configured plainly and
//! stopped, because its peer sees each start.

use npcc_dpdk::{Descriptors, Mempool, PfcQueues, Phase, Port, PortConfig, PortError};
use npcc_pipeline::units::PRIORITIES;

/// Starts a port, which is configured by `plain` and stopped, so that it obeys pause of `classes` by itself; returns the transmit queue of
/// each priority, or the reason why it does not obey, for the operator: then it is configured by `plain` and stopped.
///
/// # Errors
/// When the port cannot be configured by `plain` again.
pub(super) fn start(
    port: &mut Port,
    plain: &PortConfig,
    pool: &Mempool,
    classes: u8,
) -> Result<Result<[u16; PRIORITIES], String>, PortError> {
    let means = match means(port.pfc_queues().ok(), || supports_classes(port, classes)) {
        Ok(means) => (means, classes),
        Err(why) => return Ok(Err(why)),
    };
    let started = by_priority(port, plain, pool, means);
    if started.is_err() {
        back_to_plain(port, plain, pool, means)?;
    }
    Ok(started)
}

/// Means by which a device obeys pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// Queue-based calls: each transmit queue has a priority.
    Queues,
    /// The older call, with DCB: each traffic class has a priority.
    Classes,
}

/// Returns the means by which a device may obey pause: `queues` is its answer about queues, `classes` tries the older call, once.
///
/// # Errors
/// Gives the driver's reason if it has neither.
fn means(
    queues: Option<PfcQueues>,
    classes: impl FnOnce() -> Result<(), String>,
) -> Result<Means, String> {
    if queues.is_some_and(|able| able.obeys && able.classes >= 8) {
        return Ok(Means::Queues);
    }
    classes().map(|()| Means::Classes)
}

/// Tries the older call on a stopped port that is configured without DCB: a driver that has it may refuse for want of DCB.
///
/// # Errors
/// Gives the driver's reason if it lacks the call.
fn supports_classes(port: &mut Port, classes: u8) -> Result<(), String> {
    let first = lossless(classes).next().unwrap_or(0);
    match port.honor_pfc(first, true) {
        Err(error) if error.is_unsupported() => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Configures a port with one queue again that was to obey pause by itself and did not.
fn back_to_plain(
    port: &mut Port,
    plain: &PortConfig,
    pool: &Mempool,
    (means, classes): (Means, u8),
) -> Result<(), PortError> {
    if port.phase() == Phase::Started {
        port.stop()?;
    }
    port.configure(plain, pool)?;
    if means == Means::Classes {
        // With one queue a priority that the device still held would hold all of them. One that it never held may be refused.
        lossless(classes).for_each(|priority| {
            let _ = port.honor_pfc(priority, false);
        });
    }
    Ok(())
}

/// Descriptors of each of eight transmit rings: together as many as the one ring of other ports has.
const EACH: u16 = 128;

/// Configures and starts a port that obeys pause of `classes` by itself; returns the transmit queue of each priority.
///
/// # Errors
/// Gives the reason why the device does not obey, for the operator. The port may be left in any phase.
fn by_priority(
    port: &mut Port,
    plain: &PortConfig,
    pool: &Mempool,
    means: (Means, u8),
) -> Result<[u16; PRIORITIES], String> {
    if port.is_vdev() {
        return Err("a virtual device has no MAC that could hold a queue".to_owned());
    }
    let queues = start_with_queues(port, plain, pool, means).map_err(|error| error.to_string())?;
    let mut distinct = queues;
    distinct.sort_unstable();
    if distinct != [0, 1, 2, 3, 4, 5, 6, 7] {
        return Err(format!(
            "its traffic classes have the transmit queues {queues:?}, not one each"
        ));
    }
    let first = port.tx_queue(0).map_err(|error| error.to_string())?;
    if first.holds_at_least(1).is_none() {
        return Err("its driver does not tell what its transmit rings hold".to_owned());
    }
    Ok(queues)
}

/// Starts a device with a transmit queue per priority that obeys pause of `classes`.
fn start_with_queues(
    port: &mut Port,
    plain: &PortConfig,
    pool: &Mempool,
    (means, classes): (Means, u8),
) -> Result<[u16; PRIORITIES], PortError> {
    let eight = PortConfig {
        tx_queues: 8,
        tx_descriptors: Descriptors::Exactly(EACH),
        ..*plain
    };
    match means {
        Means::Queues => {
            port.configure(&eight, pool)?;
            lossless(classes)
                .try_for_each(|priority| port.honor_pfc_on_queue(priority, u16::from(priority)))?;
            port.start()?;
            Ok([0, 1, 2, 3, 4, 5, 6, 7])
        }
        Means::Classes => {
            let by_class = PortConfig {
                dcb: true,
                rx_queues: 1,
                ..eight
            };
            port.configure(&by_class, pool)?;
            port.start()?;
            lossless(classes).try_for_each(|priority| port.honor_pfc(priority, true))?;
            port.class_queues()
        }
    }
}

/// Iterates over the priorities of a mask.
fn lossless(classes: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |priority| classes & 1 << priority != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earlier defect: every card that lacks both calls was started with DCB, stopped, and started again, which its peer saw as a flap.
    #[test]
    fn a_device_without_both_calls_is_not_configured_for_classes() {
        let able = |classes, obeys| {
            Some(PfcQueues {
                classes,
                obeys,
                sends: false,
            })
        };
        let lacks = || Err("Operation not supported".to_owned());
        assert_eq!(means(None, lacks), lacks().map(|()| Means::Classes));
        assert_eq!(means(None, || Ok(())), Ok(Means::Classes));
        let untried = || panic!("the queues suffice");
        assert_eq!(means(able(8, true), untried), Ok(Means::Queues));
        assert_eq!(means(able(8, false), || Ok(())), Ok(Means::Classes));
        assert_eq!(
            means(able(4, true), lacks),
            lacks().map(|()| Means::Classes)
        );
    }
}
