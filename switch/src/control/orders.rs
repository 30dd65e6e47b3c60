//! Orders to the control core, over a ring it looks at once a tick, and its answers.
//!
//! An order is obeyed between two ticks, one a tick; a list of pairs bit by bit, and wholly or not at all. The control core
//! never waits for whoever gave it.
//!
//! Law: an order whose giver was told that nobody listens is never obeyed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use npcc_cnp::build::CnpStyle;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::command::{Command, Refused};
use npcc_pipeline::units::{Nanos, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

use super::order::OrderError;

/// Orders on the way at a time: an operator's pace.
const RING: usize = 64;
/// Pairs of a list taken in between two ticks.
const PAIRS_PER_TICK: usize = 64;
/// How long it is waited for that an order is taken, and then for the answer: many ticks.
const PATIENCE: Duration = Duration::from_secs(1);

/// What may be told between two ticks.
#[derive(Debug)]
enum Instruction {
    Core(Command),
    /// All of them or none. Whoever gave them holds them too, so that they are not freed here.
    Pairs(Arc<[Command]>),
    Style(CnpStyle, Priority),
}

#[derive(Debug)]
struct Order {
    instruction: Instruction,
    /// Nobody has taken it, and it is not given up; whoever makes this false decides which.
    waits: Arc<AtomicBool>,
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

    /// Gives a list of pairs, all of which hold afterwards or none. Where one is refused, those of the list that were known before
    /// are forgotten with the others.
    ///
    /// # Errors
    /// [`OrderError::Deaf`], or what the control core has against one of them.
    pub fn give_pairs(&self, pairs: &Arc<[Command]>) -> Result<(), OrderError> {
        self.instruct(Instruction::Pairs(Arc::clone(pairs)))
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
        let waits = Arc::new(AtomicBool::new(true));
        let mut ring = self.0.lock().map_err(|_| OrderError::Deaf)?;
        let order = Order {
            instruction,
            waits: Arc::clone(&waits),
            answer,
        };
        ring.push(order).map_err(|_| OrderError::Deaf)?;
        drop(ring);
        let answer = answered.recv_timeout(PATIENCE).or_else(|_| {
            if waits.swap(false, Ordering::Relaxed) {
                return Err(OrderError::Deaf);
            }
            let taken = answered.recv_timeout(PATIENCE);
            taken.map_err(|_| OrderError::Silent)
        })?;
        Ok(answer?)
    }
}

/// A list of pairs that is being taken in, or given back.
#[derive(Debug)]
struct List {
    pairs: Arc<[Command]>,
    /// So many have been taken in, or are still to be given back.
    held: usize,
    /// Why one was refused; those before it are given back.
    refused: Option<Refused>,
    answer: SyncSender<Result<(), Refused>>,
}

impl List {
    /// Goes on; the answer once all is done.
    fn go_on(&mut self, core: &mut ControlCore, now: Nanos) -> Option<Result<(), Refused>> {
        for _ in 0..PAIRS_PER_TICK {
            if let Some(why) = self.refused {
                let Some(last) = self.held.checked_sub(1) else {
                    return Some(Err(why));
                };
                self.held = last;
                if let Some(Command::AddPair { flow, .. } | Command::SuggestPair { flow, .. }) =
                    self.pairs.get(last)
                {
                    // Another of the list, or a packet, may have ended it already.
                    let _ = core.obey(&Command::DeletePair { flow: *flow }, now);
                }
                continue;
            }
            let Some(pair) = self.pairs.get(self.held) else {
                return Some(Ok(()));
            };
            match core.obey(pair, now) {
                Ok(()) => self.held += 1,
                Err(why) => self.refused = Some(why),
            }
        }
        None
    }
}

/// The control core's end.
#[derive(Debug)]
pub struct Inbox {
    orders: Consumer<Order>,
    /// The list being taken in; other orders wait.
    list: Option<List>,
}

impl Inbox {
    /// Obeys one order, if one waits, or a part of a list; `restyle` takes another look of CNPs.
    #[inline]
    pub fn obey(
        &mut self,
        core: &mut ControlCore,
        now: Nanos,
        restyle: impl FnOnce(CnpStyle, Priority),
    ) {
        if self.list.is_some() {
            self.go_on(core, now);
            return;
        }
        let Ok(order) = self.orders.pop() else {
            return;
        };
        if !order.waits.swap(false, Ordering::Relaxed) {
            return;
        }
        let done = match order.instruction {
            Instruction::Core(command) => core.obey(&command, now),
            Instruction::Pairs(pairs) => {
                self.list = Some(List {
                    pairs,
                    held: 0,
                    refused: None,
                    answer: order.answer,
                });
                self.go_on(core, now);
                return;
            }
            Instruction::Style(style, priority) => {
                restyle(style, priority);
                Ok(())
            }
        };
        // Whoever asked may have given up since.
        let _ = order.answer.try_send(done);
    }

    #[cold]
    fn go_on(&mut self, core: &mut ControlCore, now: Nanos) {
        let done = self.list.as_mut().and_then(|list| list.go_on(core, now));
        if let Some(done) = done
            && let Some(list) = self.list.take()
        {
            let _ = list.answer.try_send(done);
        }
    }
}

/// Both ends.
#[must_use]
pub fn ring() -> (NpccOrders, Inbox) {
    let (give, take) = RingBuffer::new(RING);
    let inbox = Inbox {
        orders: take,
        list: None,
    };
    (NpccOrders(Mutex::new(give)), inbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::order::{ListedPair, NpccOrder};
    use npcc_cnp::control::config::ControlConfig;

    #[test]
    fn an_order_is_obeyed_and_answered() {
        let (orders, mut inbox) = ring();
        let thread = std::thread::spawn(move || {
            let add = NpccOrder::AddPair(ListedPair {
                src: [10, 0, 1, 3].into(),
                dst: [10, 0, 2, 2].into(),
                dest_qp: 0x11,
                sender_qp: 0x18,
            });
            let add = add.command().unwrap();
            let unknown = NpccOrder::DeletePair {
                src: [10, 0, 1, 3].into(),
                dst: [10, 0, 2, 2].into(),
                dest_qp: 0x12,
            };
            let unknown = unknown.command().unwrap();
            (orders.give(add), orders.give(unknown))
        });
        let mut core = ControlCore::new(&ControlConfig {
            flows: 16,
            ends: 32,
            ..ControlConfig::default()
        });
        while !thread.is_finished() {
            inbox.obey(&mut core, Nanos(1), |_, _| {});
        }
        let (add, unknown) = thread.join().unwrap();
        assert_eq!(add, Ok(()));
        assert_eq!(unknown, Err(OrderError::Refused(Refused::UnknownPair)));
    }

    /// Such an order was obeyed when the control core came to it.
    #[test]
    fn an_order_of_which_its_giver_heard_that_nobody_listens_is_never_obeyed() {
        let (orders, mut inbox) = ring();
        assert_eq!(orders.give(pair(0)), Err(OrderError::Deaf));
        let mut core = ControlCore::new(&ControlConfig::default());
        inbox.obey(&mut core, Nanos(1), |_, _| {});
        let Command::AddPair { flow, .. } = pair(0) else {
            unreachable!()
        };
        let gone = core.obey(&Command::DeletePair { flow }, Nanos(2));
        assert_eq!(gone, Err(Refused::UnknownPair));
    }

    fn pair(n: u32) -> Command {
        let listed = ListedPair {
            src: [10, 0, 1, 3].into(),
            dst: [10, 0, 2, 2].into(),
            dest_qp: 0x100 + n,
            sender_qp: 0x1000 + n,
        };
        listed.command(false).unwrap()
    }

    /// A list took a tick for each of its pairs, and half of it held where the table was full.
    #[test]
    fn a_list_of_pairs_holds_wholly_or_not_at_all_and_takes_few_ticks() {
        let (orders, mut inbox) = ring();
        let mut core = ControlCore::new(&ControlConfig {
            flows: 1_024,
            ends: 2_048,
            ..ControlConfig::default()
        });
        let mut give = |inbox: &mut Inbox, pairs: u32| {
            let list: Arc<[Command]> = (0..pairs).map(pair).collect();
            let mut ticks = 0;
            let done = std::thread::scope(|scope| {
                let given = scope.spawn(|| orders.give_pairs(&list));
                while !given.is_finished() {
                    // Waiting for the list is no tick of it.
                    ticks += u32::from(inbox.list.is_some());
                    inbox.obey(&mut core, Nanos(1), |_, _| {});
                }
                given.join().unwrap()
            });
            let (last, one) = (pair(pairs - 1), pair(0));
            let mut known = |command: Command| {
                let Command::AddPair { flow, .. } = command else {
                    return false;
                };
                core.obey(&Command::DeletePair { flow }, Nanos(1)).is_ok()
            };
            (done, ticks, known(one), known(last))
        };
        let (done, ticks, first, last) = give(&mut inbox, 640);
        assert_eq!((done, first, last), (Ok(()), true, true));
        assert!(ticks <= 11, "{ticks}");
        let (done, _, first, last) = give(&mut inbox, 100_000);
        let full = OrderError::Refused(Refused::Full);
        assert_eq!((done, first, last), (Err(full), false, false));
        // Nothing of it takes room now.
        assert_eq!(give(&mut inbox, 640).0, Ok(()));
    }
}
