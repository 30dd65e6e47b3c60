//! Back end of a port's pause frames: the device, the switch, or none. A pure decision from the driver's name, the device's answer, and the
//! self-test at start.

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
    /// The device was not asked.
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
    /// The driver's name.
    pub driver: String,
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
}

/// Known pause support of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Pause cannot work: the reason.
    Never(&'static str),
    /// Pause frames pass as ordinary frames.
    Frames,
    /// Device with a MAC of its own.
    Mac,
}

/// Known drivers, by a part of their names; source: the drivers of DPDK 22.11.
const DRIVERS: [(&str, Known); 11] = [
    ("pcap", Known::Never("a capture or null device has no peer")),
    ("null", Known::Never("a capture or null device has no peer")),
    (
        "i40e",
        Known::Never("the i40e driver drops pause frames that software sends"),
    ),
    (
        "mlx",
        Known::Never("mlx5 keeps pause to itself: set it with mlnx_qos on the kernel interface"),
    ),
    ("af_packet", Known::Frames),
    ("af_xdp", Known::Frames),
    ("tap", Known::Frames),
    ("virtio", Known::Frames),
    ("memif", Known::Frames),
    ("vhost", Known::Frames),
    ("ring", Known::Frames),
];

fn known(driver: &str) -> Known {
    let row = DRIVERS.iter().find(|(part, _)| driver.contains(part));
    row.map_or(Known::Mac, |(_, known)| *known)
}

/// Returns true if the device is to be asked to obey pause by itself.
#[must_use]
pub fn asks(request: PfcRequest, driver: &str) -> bool {
    match (request.backend, request.port) {
        (_, PortPfc::Off) | (PfcBackend::None | PfcBackend::Software, _) => false,
        (PfcBackend::Hardware, _) => true,
        (PfcBackend::Auto, _) => known(driver) == Known::Mac,
    }
}

/// Returns true if a pause frame is to be sent at start: `ports[].pfc` is `auto`, `pfc.backend` is not `none`, and the driver can carry
/// pause frames.
#[must_use]
pub fn tests(request: PfcRequest, driver: &str) -> bool {
    let sends = matches!(request.port, PortPfc::Auto);
    sends && request.backend != PfcBackend::None && !matches!(known(driver), Known::Never(_))
}

/// Chooses the back end.
///
/// # Errors
/// Says why the device cannot obey pause, when `backend: hardware` requires it.
pub fn decide(request: PfcRequest, ability: &Ability) -> Result<BackendChoice, String> {
    let choice = |backend, why: &str| {
        Ok(BackendChoice {
            backend,
            why: why.to_owned(),
        })
    };
    let known = known(&ability.driver);
    match (request.backend, request.port) {
        (PfcBackend::None, _) => return choice(Backend::None, "pfc.backend: none"),
        (_, PortPfc::Off) => return choice(Backend::None, "pfc: off"),
        (PfcBackend::Software, _) => return choice(Backend::Software, "pfc.backend: software"),
        (PfcBackend::Hardware, _) => {
            return match &ability.answer {
                Answer::Obeys => choice(Backend::Hardware, "pfc.backend: hardware"),
                Answer::Refused(why) => Err(why.clone()),
                Answer::NotRequested => Err("the device was not asked".to_owned()),
            };
        }
        (PfcBackend::Auto, _) => {}
    }
    if ability.answer == Answer::Obeys {
        let why = "the device obeys pause by itself, with a transmit queue a priority";
        return choice(Backend::Hardware, why);
    }
    if request.port != PortPfc::Auto {
        return choice(Backend::Software, "the port is told to");
    }
    if let Known::Never(why) = known {
        return choice(Backend::None, why);
    }
    if ability.self_test == SelfTest::Refused {
        let why = "the device refused a pause frame at start; write pfc: send to have them sent all the same";
        return choice(Backend::None, why);
    }
    match (known, &ability.answer) {
        (Known::Frames, _) => choice(
            Backend::Software,
            "virtual device: pause frames are frames like others",
        ),
        (_, Answer::Refused(why)) => {
            let why = format!("{why}; its MAC may keep pause frames it receives: watch RX PFC");
            choice(Backend::Software, &why)
        }
        _ => choice(
            Backend::Software,
            "its MAC may keep pause frames it receives: watch RX PFC",
        ),
    }
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
    let unwritten = request.backend == PfcBackend::Auto && request.port == PortPfc::Auto;
    if lossless != 0 && !is_vdev && unwritten && choice.backend == Backend::None {
        return Err(choice.why.clone());
    }
    Ok(())
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
