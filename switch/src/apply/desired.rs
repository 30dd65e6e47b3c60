//! What workers and control core must hold, by a configuration and the links as they are. Pure.

use npcc_cnp::build::CnpStyle;
use npcc_cnp::control::settings::Settings;
use npcc_config::Config;
use npcc_pipeline::buffer::BufferConfig;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::units::{BitRate, Mac, PortId, Priority};

use crate::wiring;
use crate::wiring::pfc::PortFlow;
use crate::wiring::speeds::{self, Speeds};
use crate::worker::command::{Command, LinkSettings};

/// What is known of a port's link.
#[derive(Debug, Clone)]
pub struct Link {
    /// The port's address.
    pub mac: Mac,
    /// Frames may be let in.
    pub up: bool,
    /// Mb/s that the device says the link has, or said when it was last up.
    pub mbps: Option<u32>,
    /// What is done about pause on the port.
    pub flow: PortFlow,
}

/// What a port's workers must hold.
#[derive(Debug, Clone)]
pub struct Port {
    /// Frames are let in.
    pub up: bool,
    /// Speeds of link and shaper.
    pub speeds: Speeds,
    /// Intake, queues and marking.
    pub config: PortConfig,
}

/// What must run.
#[derive(Debug, Clone)]
pub struct Desired {
    /// By port.
    pub ports: Vec<Port>,
    /// By port: what is done about pause, with what follows from the speeds.
    pub flows: Vec<PortFlow>,
    /// The buffer, with headroom for all links.
    pub buffer: BufferConfig,
    /// What NPCC goes by.
    pub control: Settings,
    /// How CNPs look, and the queue they leave by.
    pub style: (CnpStyle, Priority),
}

impl Desired {
    /// By a configuration, with the links as they are.
    #[must_use]
    pub fn new(config: &Config, links: &[Link]) -> Desired {
        let port = |(plan, link): (&npcc_config::plan::Port, &Link)| {
            let speeds = speeds::of(plan, link.mbps);
            Port {
                up: link.up,
                speeds,
                config: wiring::path::port(config, plan, link.mac, speeds.shaper),
            }
        };
        let ports: Vec<Port> = config.ports.iter().zip(links).map(port).collect();
        let mut flows: Vec<PortFlow> = links.iter().map(|link| link.flow.clone()).collect();
        let speeds: Vec<BitRate> = ports.iter().map(|port| port.speeds.link).collect();
        let buffer = wiring::pfc::buffer(config, &speeds, &mut flows);
        let shapers: Vec<_> = ports.iter().map(|port| port.speeds.shaper).collect();
        Desired {
            control: wiring::control::settings(config, &shapers),
            style: wiring::control::style(config),
            ports,
            flows,
            buffer,
        }
    }

    /// The ports' parts of the path.
    #[must_use]
    pub fn paths(&self) -> Vec<PortConfig> {
        self.ports.iter().map(|port| port.config.clone()).collect()
    }

    /// What the workers are told to come from `self` to there.
    #[must_use]
    pub fn commands(&self, to: &Desired) -> Vec<Command> {
        let mut all = Vec::new();
        let ids = (0..).map(PortId);
        for (id, (from, port)) in ids.zip(self.ports.iter().zip(&to.ports)) {
            if from.config.intake.classifier != port.config.intake.classifier {
                all.push(Command::Classifier {
                    port: id,
                    classifier: port.config.intake.classifier.clone(),
                });
            }
            if from.up && !port.up {
                all.push(Command::LinkDown { port: id });
            }
            if port.up && (!from.up || from.speeds != port.speeds) {
                // It comes with queues and marking.
                all.push(to.link_up(id, port));
            } else {
                queues(id, &from.config, &port.config, &mut all);
            }
        }
        all
    }

    fn link_up(&self, id: PortId, port: &Port) -> Command {
        let outstanding = self.flows.get(id.index()).and_then(|flow| flow.outstanding);
        Command::LinkUp {
            port: id,
            settings: Box::new(LinkSettings {
                port: port.config.clone(),
                link: port.speeds.link,
                outstanding: outstanding.unwrap_or(u64::MAX),
                buffer: self.buffer.clone(),
            }),
        }
    }
}

fn queues(port: PortId, from: &PortConfig, to: &PortConfig, all: &mut Vec<Command>) {
    let queues = from.egress.queues.iter().zip(&to.egress.queues);
    for (priority, (from, to)) in Priority::all().zip(queues) {
        if from != to {
            all.push(Command::Queue {
                port,
                priority,
                config: to.clone(),
            });
        }
    }
    if from.ecn != to.ecn {
        let ecn = to.ecn;
        all.push(Command::Ecn { port, ecn });
    }
}
