//! Commands to the control core, over a ring that it polls in every call, and its answers.
//!
//! A command is carried out between two calls of the core, one at a time; a list of pairs in parts. The control
//! core never waits for the thread that gave it.
//!
//! Law: a command that was reported as timed out ([`ControlCommandError::TimedOut`]) is never carried out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use npcc_api::cnps::CnpOrder;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::command::{ControlCommand, Refused};
use npcc_pipeline::units::{Nanos, Priority};
use npcc_roce::build::CnpHeader;
use npcc_roce::pair::foreign::view::Reports;
use rtrb::{Consumer, Producer, RingBuffer};

use super::inject::InjectorCommand;
use super::order;
use super::pairs::ControlCommandError;

/// Capacity of the ring: an operator's pace.
const RING: usize = 64;
/// Pairs of a list taken between two calls.
const PAIRS_PER_TICK: usize = 64;
/// Longest wait for a command to be taken, and then for the answer: many ticks.
const PATIENCE: Duration = Duration::from_secs(1);

/// Instruction that may be carried out between two calls.
#[derive(Debug)]
enum Instruction {
    Core(ControlCommand),
    /// Pairs. The giver holds them too, so that they are not freed here.
    Pairs(Arc<[ControlCommand]>),
    /// Reports of a peer.
    Reports(Arc<Reports>),
    Injector(InjectorCommand),
}

#[derive(Debug)]
struct PendingCommand {
    instruction: Instruction,
    /// True while the command is neither taken nor given up; the thread that makes it false decides which.
    untaken: Arc<AtomicBool>,
    answer: SyncSender<Result<(), Refused>>,
}

/// Sending end, which the threads that change the configuration share.
#[derive(Debug)]
pub struct ControlCommands(Mutex<Producer<PendingCommand>>);

impl ControlCommands {
    /// Gives a command and waits for the answer.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`], or the control core's reason for a refusal.
    pub fn send_and_wait(&self, command: ControlCommand) -> Result<(), ControlCommandError> {
        self.instruct(Instruction::Core(command))
    }

    /// Gives a list of pairs. If one is refused, those before it are kept and those after it are not taken.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`], or the control core's reason to refuse one of them.
    pub fn send_pairs_and_wait(
        &self,
        pairs: &Arc<[ControlCommand]>,
    ) -> Result<(), ControlCommandError> {
        self.instruct(Instruction::Pairs(Arc::clone(pairs)))
    }

    /// Sends the reports of a peer and waits until they are taken; the list has the outcome afterwards.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`].
    pub fn send_reports_and_wait(&self, reports: &Arc<Reports>) -> Result<(), ControlCommandError> {
        self.instruct(Instruction::Reports(Arc::clone(reports)))
    }

    /// Changes the header of CNPs, or the queue they enter, from now on.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`].
    pub fn set_cnp_header(
        &self,
        header: CnpHeader,
        priority: Priority,
    ) -> Result<(), ControlCommandError> {
        self.give_cnp_header(header, priority)?.wait()
    }

    /// Gives a command, without waiting for the answer.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`] if the ring is full.
    pub fn give(&self, command: ControlCommand) -> Result<Answer, ControlCommandError> {
        self.push(Instruction::Core(command))
    }

    /// Changes the header of CNPs as [`set_cnp_header`](Self::set_cnp_header), without waiting for the answer.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`] if the ring is full.
    pub fn give_cnp_header(
        &self,
        header: CnpHeader,
        priority: Priority,
    ) -> Result<Answer, ControlCommandError> {
        let command = InjectorCommand::SetHeader(header, priority);
        self.push(Instruction::Injector(command))
    }

    /// Sends one CNP that an operator requests, and waits until it is in the ring to its worker.
    ///
    /// # Errors
    /// Fails with [`ControlCommandError::TimedOut`], or the reason why the CNP cannot leave.
    pub fn send_cnp(&self, order: &CnpOrder) -> Result<(), ControlCommandError> {
        self.instruct(Instruction::Injector(order::command(order)?))
    }

    fn instruct(&self, instruction: Instruction) -> Result<(), ControlCommandError> {
        self.push(instruction)?.wait()
    }

    fn push(&self, instruction: Instruction) -> Result<Answer, ControlCommandError> {
        let (answer, answered) = sync_channel(1);
        let untaken = Arc::new(AtomicBool::new(true));
        let mut ring = self.0.lock().map_err(|_| ControlCommandError::TimedOut)?;
        let command = PendingCommand {
            instruction,
            untaken: Arc::clone(&untaken),
            answer,
        };
        ring.push(command)
            .map_err(|_| ControlCommandError::TimedOut)?;
        Ok(Answer { answered, untaken })
    }
}

/// Answer to a command that was given, which is still to come.
#[derive(Debug)]
pub struct Answer {
    answered: Receiver<Result<(), Refused>>,
    untaken: Arc<AtomicBool>,
}

impl Answer {
    /// Waits for the answer.
    fn wait(self) -> Result<(), ControlCommandError> {
        let Answer { answered, untaken } = self;
        let answer = answered.recv_timeout(PATIENCE).or_else(|_| {
            if untaken.swap(false, Ordering::Relaxed) {
                return Err(ControlCommandError::TimedOut);
            }
            let taken = answered.recv_timeout(PATIENCE);
            taken.map_err(|_| ControlCommandError::Silent)
        })?;
        Ok(answer?)
    }

    /// Returns the answer once it has come.
    #[must_use]
    pub fn poll(&self) -> Option<Result<(), Refused>> {
        self.answered.try_recv().ok()
    }
}

/// List of pairs that is being taken in.
#[derive(Debug)]
struct List {
    pairs: Arc<[ControlCommand]>,
    next: usize,
    answer: SyncSender<Result<(), Refused>>,
}

impl List {
    /// Takes in the next pairs; returns the answer once all are, or one was refused.
    fn continue_list(&mut self, core: &mut ControlCore, now: Nanos) -> Option<Result<(), Refused>> {
        for _ in 0..PAIRS_PER_TICK {
            let Some(pair) = self.pairs.get(self.next) else {
                return Some(Ok(()));
            };
            if let Err(why) = core.execute(pair, now) {
                return Some(Err(why));
            }
            self.next += 1;
        }
        None
    }
}

/// Reports that are being taken in.
#[derive(Debug)]
struct Intake {
    reports: Arc<Reports>,
    next: usize,
    answer: SyncSender<Result<(), Refused>>,
}

impl Intake {
    /// Takes in the next reports; returns the answer once all are.
    fn continue_intake(
        &mut self,
        core: &mut ControlCore,
        now: Nanos,
    ) -> Option<Result<(), Refused>> {
        for _ in 0..PAIRS_PER_TICK {
            if !core.take_report(&self.reports, self.next, now) {
                return Some(Ok(()));
            }
            self.next += 1;
        }
        None
    }
}

/// Work of several turns.
#[derive(Debug)]
enum Work {
    Pairs(List),
    Reports(Intake),
}

impl Work {
    /// Does the next part; returns the answer once all is done.
    fn continue_work(&mut self, core: &mut ControlCore, now: Nanos) -> Option<Result<(), Refused>> {
        match self {
            Work::Pairs(list) => list.continue_list(core, now),
            Work::Reports(intake) => intake.continue_intake(core, now),
        }
    }

    const fn answer(&self) -> &SyncSender<Result<(), Refused>> {
        match self {
            Work::Pairs(list) => &list.answer,
            Work::Reports(intake) => &intake.answer,
        }
    }
}

/// Control core's end.
#[derive(Debug)]
pub struct Inbox {
    commands: Consumer<PendingCommand>,
    /// Work in progress; other commands wait.
    work: Option<Work>,
}

impl Inbox {
    /// Carries out one waiting command, or a part of a list; `inject` carries out those to the injector.
    #[inline]
    pub fn execute_next(
        &mut self,
        core: &mut ControlCore,
        now: Nanos,
        inject: impl FnOnce(&InjectorCommand) -> Result<(), Refused>,
    ) {
        if self.work.is_some() {
            self.go_on(core, now);
            return;
        }
        let Ok(command) = self.commands.pop() else {
            return;
        };
        if !command.untaken.swap(false, Ordering::Relaxed) {
            return;
        }
        let done = match command.instruction {
            Instruction::Core(command) => core.execute(&command, now),
            Instruction::Pairs(pairs) => {
                self.work = Some(Work::Pairs(List {
                    pairs,
                    next: 0,
                    answer: command.answer,
                }));
                self.go_on(core, now);
                return;
            }
            Instruction::Reports(reports) => {
                self.work = Some(Work::Reports(Intake {
                    reports,
                    next: 0,
                    answer: command.answer,
                }));
                self.go_on(core, now);
                return;
            }
            Instruction::Injector(command) => inject(&command),
        };
        // The giver may have stopped waiting.
        let _ = command.answer.try_send(done);
    }

    #[cold]
    fn go_on(&mut self, core: &mut ControlCore, now: Nanos) {
        let done = self
            .work
            .as_mut()
            .and_then(|work| work.continue_work(core, now));
        if let Some(done) = done
            && let Some(work) = self.work.take()
        {
            let _ = work.answer().try_send(done);
        }
    }
}

/// Makes both ends of the ring.
#[must_use]
pub fn ring() -> (ControlCommands, Inbox) {
    let (give, take) = RingBuffer::new(RING);
    let inbox = Inbox {
        commands: take,
        work: None,
    };
    (ControlCommands(Mutex::new(give)), inbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::pairs;
    use npcc_api::pairs::ListedPair;
    use npcc_cnp::control::config::ControlConfig;

    #[test]
    fn a_command_is_executed_and_answered() {
        let (commands, mut inbox) = ring();
        let thread = std::thread::spawn(move || {
            let add = ListedPair {
                src: [10, 0, 1, 3].into(),
                dst: [10, 0, 2, 2].into(),
                dest_qp: 0x11,
                sender_qp: 0x18,
            };
            let add = pairs::pair_command(&add, false).unwrap();
            let unknown =
                pairs::delete_command([10, 0, 1, 3].into(), [10, 0, 2, 2].into(), 0x12).unwrap();
            (commands.send_and_wait(add), commands.send_and_wait(unknown))
        });
        let mut core = ControlCore::new(&ControlConfig {
            flows: 16,
            ends: 32,
            ..ControlConfig::default()
        });
        while !thread.is_finished() {
            inbox.execute_next(&mut core, Nanos(1), |_| Ok(()));
        }
        let (add, unknown) = thread.join().unwrap();
        assert_eq!(add, Ok(()));
        assert_eq!(
            unknown,
            Err(ControlCommandError::Refused(Refused::UnknownPair))
        );
    }

    /// Such a command was once carried out when the control core came to it.
    #[test]
    fn a_command_reported_as_timed_out_is_never_executed() {
        let (commands, mut inbox) = ring();
        assert_eq!(
            commands.send_and_wait(pair(0)),
            Err(ControlCommandError::TimedOut)
        );
        let mut core = ControlCore::new(&ControlConfig::default());
        inbox.execute_next(&mut core, Nanos(1), |_| Ok(()));
        let ControlCommand::AddPair { flow, .. } = pair(0) else {
            unreachable!()
        };
        let gone = core.execute(&ControlCommand::DeletePair { flow }, Nanos(2));
        assert_eq!(gone, Err(Refused::UnknownPair));
    }

    fn pair(n: u32) -> ControlCommand {
        let listed = ListedPair {
            src: [10, 0, 1, 3].into(),
            dst: [10, 0, 2, 2].into(),
            dest_qp: 0x100 + n,
            sender_qp: 0x1000 + n,
        };
        pairs::pair_command(&listed, false).unwrap()
    }

    /// A list once took a tick for each of its pairs.
    #[test]
    fn a_list_of_pairs_takes_few_ticks_and_ends_with_the_first_that_is_refused() {
        let (commands, mut inbox) = ring();
        let mut core = ControlCore::new(&ControlConfig {
            flows: 1_024,
            ends: 2_048,
            ..ControlConfig::default()
        });
        let mut give = |inbox: &mut Inbox, pairs: u32| {
            let list: Arc<[ControlCommand]> = (0..pairs).map(pair).collect();
            let mut ticks = 0;
            let done = std::thread::scope(|scope| {
                let given = scope.spawn(|| commands.send_pairs_and_wait(&list));
                while !given.is_finished() {
                    // A call without a list in progress is not counted.
                    ticks += u32::from(inbox.work.is_some());
                    inbox.execute_next(&mut core, Nanos(1), |_| Ok(()));
                }
                given.join().unwrap()
            });
            let (last, one) = (pair(pairs - 1), pair(0));
            let mut known = |command: ControlCommand| {
                let ControlCommand::AddPair { flow, .. } = command else {
                    return false;
                };
                core.execute(&ControlCommand::DeletePair { flow }, Nanos(1))
                    .is_ok()
            };
            (done, ticks, known(one), known(last))
        };
        let (done, ticks, first, last) = give(&mut inbox, 640);
        assert_eq!((done, first, last), (Ok(()), true, true));
        assert!(ticks <= 11, "{ticks}");
        let (done, _, first, last) = give(&mut inbox, 100_000);
        let full = ControlCommandError::Refused(Refused::Full);
        assert_eq!((done, first, last), (Err(full), true, false));
    }
}
