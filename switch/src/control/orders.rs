//! Orders to the control core, over a ring it looks at once a tick, and its answers.
//!
//! An order is obeyed between two ticks, one a tick. The control core never waits for whoever gave it.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use npcc_cnp::action::Action;
use npcc_cnp::build::CnpStyle;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::command::{Command, Name, Refused};
use npcc_cnp::key::{FlowKey, Qpn};
use npcc_pipeline::units::{Nanos, PortId, Priority};
use rtrb::{Consumer, Producer, RingBuffer};
use serde::{Deserialize, Serialize};

/// Orders on the way at a time: an operator's pace.
const RING: usize = 64;
/// How long an answer is waited for: many ticks.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an operator asks of NPCC, as it goes over the management socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NpccOrder {
    /// These queue pairs are one connection.
    AddPair {
        /// Who sends the data.
        src: IpAddr,
        /// Who receives them.
        dst: IpAddr,
        /// The receiver's queue pair.
        dest_qp: u32,
        /// The sender's.
        sender_qp: u32,
    },
    /// Forget the pair of these packets.
    DeletePair {
        /// Who sends them.
        src: IpAddr,
        /// Who receives them.
        dst: IpAddr,
        /// The receiver's queue pair.
        dest_qp: u32,
    },
    /// Another policy for a queue.
    Policy {
        /// The port's name.
        port: String,
        /// The queue.
        priority: u8,
        /// The policy's name.
        name: String,
    },
    /// Another value for a parameter of a queue's policy.
    Parameter {
        /// The port's name.
        port: String,
        /// The queue.
        priority: u8,
        /// The parameter's name.
        name: String,
        /// Its value, in its unit.
        value: u64,
    },
    /// Whether CNPs leave, for the whole switch.
    Action {
        /// What becomes of decisions.
        action: Action,
    },
    /// Whether CNPs leave, for a queue.
    QueueAction {
        /// The port's name.
        port: String,
        /// The queue.
        priority: u8,
        /// What becomes of decisions.
        action: Action,
    },
}

/// Why an order did not reach the control core.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// There is no such port.
    #[error("there is no port `{0}`; see show ports")]
    Port(String),
    /// The name cannot be one.
    #[error("`{0}` is no policy and no parameter")]
    Name(String),
    /// A queue pair's number has 24 bits.
    #[error("{0} is no queue pair: write 2 to 16777215")]
    QueuePair(u32),
    /// Nobody took it.
    #[error("the control core does not listen")]
    Deaf,
    /// It said no.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl NpccOrder {
    /// The key that `set` names it by, if it is a setting.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        match self {
            NpccOrder::AddPair { .. } | NpccOrder::DeletePair { .. } => None,
            NpccOrder::Policy { port, priority, .. } => {
                Some(format!("npcc.{port}.{priority}.policy"))
            }
            NpccOrder::Parameter {
                port,
                priority,
                name,
                ..
            } => Some(format!("npcc.{port}.{priority}.{name}")),
            NpccOrder::Action { .. } => Some("npcc.action".to_owned()),
            NpccOrder::QueueAction { port, priority, .. } => {
                Some(format!("npcc.{port}.{priority}.action"))
            }
        }
    }

    /// The watched queue whose policy it is about, if it is a setting of one.
    #[must_use]
    pub fn slot(&self) -> Option<(&str, u8)> {
        match self {
            NpccOrder::AddPair { .. }
            | NpccOrder::DeletePair { .. }
            | NpccOrder::Action { .. }
            | NpccOrder::QueueAction { .. } => None,
            NpccOrder::Policy { port, priority, .. }
            | NpccOrder::Parameter { port, priority, .. } => Some((port, *priority)),
        }
    }

    /// As the control core takes it; `port` finds a port by its name.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn command(&self, port: impl Fn(&str) -> Option<PortId>) -> Result<Command, OrderError> {
        let place = |named: &str, priority: u8| {
            let found = port(named).filter(|_| priority < 8);
            let found = found.ok_or_else(|| OrderError::Port(named.to_owned()))?;
            Ok::<_, OrderError>((found, Priority::new(priority)))
        };
        let short = |name: &str| Name::from(name).map_err(|_| OrderError::Name(name.to_owned()));
        let qpn = |number: u32| match number {
            2..=0x00ff_ffff => Ok(Qpn::new(number)),
            _ => Err(OrderError::QueuePair(number)),
        };
        Ok(match self {
            NpccOrder::AddPair {
                src,
                dst,
                dest_qp,
                sender_qp,
            } => Command::AddPair {
                flow: FlowKey::new(*src, *dst, qpn(*dest_qp)?),
                sender: qpn(*sender_qp)?,
            },
            NpccOrder::DeletePair { src, dst, dest_qp } => Command::DeletePair {
                flow: FlowKey::new(*src, *dst, qpn(*dest_qp)?),
            },
            NpccOrder::Policy {
                port,
                priority,
                name,
            } => {
                let (port, priority) = place(port, *priority)?;
                Command::Policy {
                    port,
                    priority,
                    name: short(name)?,
                }
            }
            NpccOrder::Parameter {
                port,
                priority,
                name,
                value,
            } => {
                let (port, priority) = place(port, *priority)?;
                Command::Parameter {
                    port,
                    priority,
                    name: short(name)?,
                    value: *value,
                }
            }
            NpccOrder::Action { action } => Command::Action {
                queue: None,
                action: *action,
            },
            NpccOrder::QueueAction {
                port,
                priority,
                action,
            } => Command::Action {
                queue: Some(place(port, *priority)?),
                action: *action,
            },
        })
    }
}

/// What may be told between two ticks.
#[derive(Debug)]
enum Instruction {
    Core(Command),
    Style(CnpStyle, Priority),
}

#[derive(Debug)]
struct Order {
    instruction: Instruction,
    answer: SyncSender<Result<(), Refused>>,
}

/// The management thread's end.
#[derive(Debug)]
pub struct NpccOrders(Mutex<Producer<Order>>);

impl NpccOrders {
    /// Gives an order and waits for the answer.
    ///
    /// # Errors
    /// [`OrderError::Deaf`], or what the control core has against it.
    pub fn give(&self, command: Command) -> Result<(), OrderError> {
        self.instruct(Instruction::Core(command))
    }

    /// CNPs are built in another style, or enter another queue, from now on.
    ///
    /// # Errors
    /// [`OrderError::Deaf`].
    pub fn restyle(&self, style: CnpStyle, priority: Priority) -> Result<(), OrderError> {
        self.instruct(Instruction::Style(style, priority))
    }

    fn instruct(&self, instruction: Instruction) -> Result<(), OrderError> {
        let (answer, answered) = sync_channel(1);
        let mut ring = self.0.lock().map_err(|_| OrderError::Deaf)?;
        let order = Order {
            instruction,
            answer,
        };
        ring.push(order).map_err(|_| OrderError::Deaf)?;
        drop(ring);
        let answer = answered.recv_timeout(PATIENCE);
        Ok(answer.map_err(|_| OrderError::Deaf)??)
    }
}

/// The control core's end.
#[derive(Debug)]
pub struct Inbox(Consumer<Order>);

impl Inbox {
    /// Obeys one order, if one waits; `restyle` takes another look of CNPs.
    #[inline]
    pub fn obey(
        &mut self,
        core: &mut ControlCore,
        now: Nanos,
        restyle: impl FnOnce(CnpStyle, Priority),
    ) {
        if let Ok(order) = self.0.pop() {
            let answer = match order.instruction {
                Instruction::Core(command) => core.obey(&command, now),
                Instruction::Style(style, priority) => {
                    restyle(style, priority);
                    Ok(())
                }
            };
            // Whoever asked may have given up.
            let _ = order.answer.try_send(answer);
        }
    }
}

/// Both ends.
#[must_use]
pub fn ring() -> (NpccOrders, Inbox) {
    let (give, take) = RingBuffer::new(RING);
    (NpccOrders(Mutex::new(give)), Inbox(take))
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_cnp::control::config::ControlConfig;

    fn ports(name: &str) -> Option<PortId> {
        (name == "wan0").then_some(PortId(1))
    }

    #[test]
    fn an_order_is_obeyed_and_answered() {
        let (orders, mut inbox) = ring();
        let thread = std::thread::spawn(move || {
            let add = NpccOrder::AddPair {
                src: [10, 0, 1, 3].into(),
                dst: [10, 0, 2, 2].into(),
                dest_qp: 0x11,
                sender_qp: 0x18,
            };
            let unknown = NpccOrder::Policy {
                port: "wan0".to_owned(),
                priority: 3,
                name: "model".to_owned(),
            };
            let add = orders.give(add.command(ports).unwrap());
            (add, orders.give(unknown.command(ports).unwrap()))
        });
        let mut core = ControlCore::new(&ControlConfig {
            flows: 16,
            ends: 32,
            ..ControlConfig::default()
        });
        while !thread.is_finished() {
            inbox.obey(&mut core, Nanos(1), |_, _| {});
        }
        let (add, policy) = thread.join().unwrap();
        assert_eq!(add, Ok(()));
        assert_eq!(policy, Err(OrderError::Refused(Refused::UnknownQueue)));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let order = |port: &str, name: &str| NpccOrder::Policy {
            port: port.to_owned(),
            priority: 3,
            name: name.to_owned(),
        };
        assert_eq!(
            order("lan9", "npcc").command(ports),
            Err(OrderError::Port("lan9".to_owned()))
        );
        let long = "a name that nothing has ever had";
        assert_eq!(
            order("wan0", long).command(ports),
            Err(OrderError::Name(long.to_owned()))
        );
        let pair = NpccOrder::DeletePair {
            src: [10, 0, 1, 3].into(),
            dst: [10, 0, 2, 2].into(),
            dest_qp: 1 << 24,
        };
        assert_eq!(pair.command(ports), Err(OrderError::QueuePair(1 << 24)));
    }
}
