//! Desired state of workers and control core, from a configuration and the present links. No I/O.

use npcc_cnp::control::settings::Settings;
use npcc_config::Config;
use npcc_pipeline::buffer::BufferConfig;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::units::{BitRate, Mac, PortId, Priority};
use npcc_roce::build::CnpHeader;

use crate::wiring;
use crate::wiring::pfc::PfcState;
use crate::wiring::speeds::{self, Speeds};
use npcc_engine::worker::command::{PortSettings, WorkerCommand};

/// State of a port's link.
#[derive(Debug, Clone)]
pub struct ObservedLink {
    /// MAC address of the port.
    pub mac: Mac,
    /// True if frames may be accepted.
    pub up: bool,
    /// True if the operator allows it to be up.
    pub admin_up: bool,
    /// Link speed in Mb/s that the device reports, or reported when it was last up.
    pub mbps: Option<u32>,
    /// Flow control of the port.
    pub pfc: PfcState,
}

/// Desired state of a port in the workers.
#[derive(Debug, Clone)]
pub struct PortState {
    /// True if frames are accepted.
    pub up: bool,
    /// True if the operator allows it to be up; else what it receives is dropped, whatever the device does.
    pub admin_up: bool,
    /// Speeds of link and shaper.
    pub speeds: Speeds,
    /// Settings of intake, queues and marking.
    pub config: PortConfig,
}

/// Desired state of the switch.
#[derive(Debug, Clone)]
pub struct DesiredState {
    /// Settings of each port.
    pub ports: Vec<PortState>,
    /// Flow control of each port, with the values that follow from the speeds.
    pub pfc: Vec<PfcState>,
    /// Buffer settings, with headroom for all links.
    pub buffer: BufferConfig,
    /// Settings of NPCC.
    pub control: Settings,
    /// Style of CNPs, and the queue they leave by.
    pub cnp_header: (CnpHeader, Priority),
}

impl DesiredState {
    /// Derives the desired state from a configuration and the present links.
    #[must_use]
    pub fn new(config: &Config, links: &[ObservedLink]) -> DesiredState {
        let port = |(resolved, link): (&npcc_config::resolved::Port, &ObservedLink)| {
            let speeds = speeds::of(resolved, link.mbps);
            PortState {
                up: link.up,
                admin_up: link.admin_up,
                speeds,
                config: wiring::path::port(config, resolved, link.mac, speeds.shaper),
            }
        };
        let ports: Vec<PortState> = config.ports.iter().zip(links).map(port).collect();
        let mut pfc: Vec<PfcState> = links.iter().map(|link| link.pfc.clone()).collect();
        let speeds: Vec<BitRate> = ports.iter().map(|port| port.speeds.link).collect();
        let buffer = wiring::pfc::buffer(config, &speeds, &mut pfc);
        let shapers: Vec<_> = ports.iter().map(|port| port.speeds.shaper).collect();
        DesiredState {
            control: wiring::npcc::settings(config, &shapers),
            cnp_header: wiring::npcc::cnp_header(config),
            ports,
            pfc,
            buffer,
        }
    }

    /// Returns the ports' datapath settings.
    #[must_use]
    pub fn paths(&self) -> Vec<PortConfig> {
        self.ports.iter().map(|port| port.config.clone()).collect()
    }

    /// Returns the commands that bring the workers from `self` to `to`. A port whose link is down gets a changed speed when the link comes up.
    #[must_use]
    pub fn commands(&self, to: &DesiredState) -> Vec<WorkerCommand> {
        let mut all = Vec::new();
        let ids = (0..).map(PortId);
        for (id, (from, port)) in ids.zip(self.ports.iter().zip(&to.ports)) {
            if from.config.intake.classifier != port.config.intake.classifier {
                all.push(WorkerCommand::Classifier {
                    port: id,
                    classifier: port.config.intake.classifier.clone(),
                });
            }
            if from.admin_up != port.admin_up {
                all.push(WorkerCommand::PortAdmin {
                    port: id,
                    up: port.admin_up,
                });
            }
            if from.up && !port.up {
                all.push(WorkerCommand::LinkDown { port: id });
            }
            if port.up && (!from.up || from.speeds != port.speeds) {
                // The command contains speeds, queues and marking, but not the classifier.
                all.push(to.configure_port(id, port));
            } else {
                queues(id, &from.config, &port.config, &mut all);
            }
        }
        all
    }

    fn configure_port(&self, id: PortId, port: &PortState) -> WorkerCommand {
        let outstanding = self.pfc.get(id.index()).and_then(|pfc| pfc.outstanding);
        WorkerCommand::ConfigurePort {
            port: id,
            settings: Box::new(PortSettings {
                port: port.config.clone(),
                link: port.speeds.link,
                outstanding: outstanding.unwrap_or(u64::MAX),
                buffer: self.buffer.clone(),
            }),
        }
    }
}

fn queues(port: PortId, from: &PortConfig, to: &PortConfig, all: &mut Vec<WorkerCommand>) {
    let queues = from.egress.queues.iter().zip(&to.egress.queues);
    for (priority, (from, to)) in Priority::all().zip(queues) {
        if from != to {
            all.push(WorkerCommand::Queue {
                port,
                priority,
                config: to.clone(),
            });
        }
    }
    if from.ecn != to.ecn {
        let ecn = to.ecn;
        all.push(WorkerCommand::Ecn { port, ecn });
    }
}
