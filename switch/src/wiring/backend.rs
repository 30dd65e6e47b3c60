//! Back end of a port's pause frames: the device, the switch, or none. A pure decision from what is known of the card, the device's answer,
//! and the self-test at start.

use std::path::Path;

use npcc_config::cards::{Auto, Card, is_auto};
use npcc_config::model::{PfcBackend, PortPfc};

npcc_pipeline::named! {
    /// Back end that obeys and sends pause frames.
    pub enum Backend {
        /// Pause is neither obeyed nor sent.
        None = "none",
        /// The switch sends and parses them as ordinary frames.
        Software = "software",
        /// The device obeys them, with a transmit queue per priority; the switch sends them, long before the device's own FIFO fills.
        Hardware = "hardware",
    }
}

/// Operator's settings for a port's pause.
#[derive(Debug, Clone, Copy)]
pub struct PfcRequest {
    /// `pfc.backend`.
    pub backend: PfcBackend,
    /// `ports[].pfc`.
    pub port: PortPfc,
}

/// Answer of the device to the request to obey pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The device got no request.
    NotRequested,
    /// The device obeys.
    Obeys,
    /// The device refused, or lacks the call: the driver's message.
    Refused(String),
}

npcc_pipeline::named! {
    /// Result of the pause frame sent at start, which has a pause time of 0.
    pub enum SelfTest {
        /// No frame was sent.
        NotRun = "not run",
        /// The link is down.
        LinkDown = "link down",
        /// The device counted it as sent.
        Sent = "sent",
        /// The device did not take it, or counted an error.
        Refused = "refused",
        /// The device took it and counted nothing: its driver may filter pause frames, or count late.
        Uncounted = "not counted",
    }
}

/// Facts about a port's pause support.
#[derive(Debug, Clone)]
pub struct Ability {
    /// Row of the card in the table.
    pub card: &'static Card,
    /// The device's answer.
    pub answer: Answer,
    /// Result of the self-test.
    pub self_test: SelfTest,
}

/// Back end chosen for a port, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendChoice {
    /// Chosen back end.
    pub backend: Backend,
    /// Reason, for the operator.
    pub why: String,
    /// True if nothing shows that pause works with this card: neither its driver's source nor a test.
    pub suspected: bool,
}

impl BackendChoice {
    /// Returns the choice of a back end whose pause is not in doubt.
    #[must_use]
    pub fn of(backend: Backend, why: &str) -> BackendChoice {
        BackendChoice {
            backend,
            why: why.to_owned(),
            suspected: false,
        }
    }
}

/// Returns the row of a port's card, by its driver and its folder in sysfs: a virtual function has the driver of the physical one with some
/// cards.
#[must_use]
pub fn card(driver: &str, device: &Path) -> &'static Card {
    Card::of_driver(driver, device.join("physfn").exists())
}

/// Returns the folder of a PCI device in sysfs; one that does not exist for a virtual device.
#[must_use]
pub fn sysfs(device: &npcc_config::resolved::Device) -> std::path::PathBuf {
    Path::new("/sys/bus/pci/devices").join(device.id())
}

/// Returns true if the device is to be requested to obey pause by itself.
#[must_use]
pub fn asks(request: PfcRequest, card: &Card) -> bool {
    match (request.backend, request.port) {
        (_, PortPfc::Off) | (PfcBackend::None | PfcBackend::Software, _) => false,
        (PfcBackend::Hardware, _) => true,
        // A device that lacks the call costs one call; virtual devices have no MAC at all.
        (PfcBackend::Auto, _) => !card.is_software(),
    }
}

/// Returns true if a pause frame is to be sent at start: `ports[].pfc` is `auto`, `pfc.backend` is not `none`, and the port is not refused
/// in any case.
#[must_use]
pub fn tests(request: PfcRequest, card: &Card) -> bool {
    let sends = matches!(request.port, PortPfc::Auto);
    sends && request.backend != PfcBackend::None && !matches!(card.auto, Auto::Refused(_))
}

/// Chooses the back end.
///
/// # Errors
/// Says why the device cannot obey pause, when `backend: hardware` requires it.
pub fn decide(request: PfcRequest, ability: &Ability) -> Result<BackendChoice, String> {
    let card = ability.card;
    let choice = |backend, why: &str| {
        Ok(BackendChoice {
            suspected: backend == Backend::Software && card.is_suspected(request.port),
            ..BackendChoice::of(backend, why)
        })
    };
    match (request.backend, request.port) {
        (PfcBackend::None, _) => return choice(Backend::None, "pfc.backend: none"),
        (_, PortPfc::Off) => return choice(Backend::None, "pfc: off"),
        (PfcBackend::Software, _) => return choice(Backend::Software, "pfc.backend: software"),
        (PfcBackend::Hardware, _) => {
            return match &ability.answer {
                Answer::Obeys => choice(Backend::Hardware, "pfc.backend: hardware"),
                Answer::Refused(why) => Err(why.clone()),
                Answer::NotRequested => Err("the device got no request".to_owned()),
            };
        }
        (PfcBackend::Auto, _) => {}
    }
    if ability.answer == Answer::Obeys {
        let why = "the device obeys pause by itself, with a transmit queue a priority";
        return choice(Backend::Hardware, why);
    }
    if request.port != PortPfc::Auto {
        return choice(Backend::Software, "the port's pfc requires it");
    }
    match (card.auto, ability.self_test) {
        (Auto::Refused(why), _) => choice(Backend::None, why),
        (_, SelfTest::Refused) => {
            choice(Backend::None, "the device refused a pause frame at start")
        }
        (Auto::StartsIfCounted, SelfTest::Uncounted) => choice(
            Backend::None,
            "the device took a pause frame at start and did not count it as sent",
        ),
        _ if card.is_software() => choice(
            Backend::Software,
            "virtual device: pause frames are frames like others",
        ),
        _ => choice(Backend::Software, &by_software(card, &ability.answer)),
    }
}

/// Returns the reason for pause in software on a card.
fn by_software(card: &Card, answer: &Answer) -> String {
    let mut why = match answer {
        Answer::Refused(why) => format!("{why}; "),
        _ => String::new(),
    };
    why += if card.is_suspected(PortPfc::Auto) {
        "nothing shows that the peer's pause frames reach the switch: watch RX PFC"
    } else {
        "its driver passes pause frames in both directions"
    };
    why
}

/// Checks that a port may run with the chosen back end: a physical port with lossless priorities must have pause, unless the configuration
/// turns it off explicitly.
///
/// # Errors
/// Says why the port has no pause.
pub fn admits(
    request: PfcRequest,
    choice: &BackendChoice,
    lossless: u8,
    is_vdev: bool,
) -> Result<(), String> {
    let unwritten = is_auto(request.backend, request.port);
    if lossless != 0 && !is_vdev && unwritten && choice.backend == Backend::None {
        return Err(choice.why.clone());
    }
    Ok(())
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
