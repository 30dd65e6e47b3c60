//! Devices in memory: rings with a length, a wire with a speed, a pool with an end, and a clock that the world sets.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use arrayvec::ArrayVec;
use npcc_engine::clock::Now;
use npcc_engine::worker::io::{Buffer, Io, Pool, Receive};
use npcc_pipeline::frame::{FrameBuf, FrameVec, wire_len};
use npcc_pipeline::tx_ring::Device;
use npcc_pipeline::units::Nanos;

/// Bytes that a frame may grow at its front.
const HEADROOM: usize = 128;
/// Longest frame that a buffer holds.
const ROOM: usize = 9_216;

/// Devices of the world.
#[derive(Debug, Clone, Copy)]
pub struct Memory;

impl Io for Memory {
    type Buf = Buf;
    type Rx = RxQueue;
    type Tx = TxQueue;
    type Pool = Buffers;
    type Clock = Clock;
}

/// Clock of one thread of the switch. The world sets the time; each reading takes `cost`.
#[derive(Debug, Clone)]
pub struct Clock {
    pub time: Rc<Cell<u64>>,
    pub cost: u64,
}

impl Now for Clock {
    fn now(&self) -> Nanos {
        let now = self.time.get();
        self.time.set(now + self.cost);
        Nanos(now)
    }
}

/// Pool of so many buffers. The numbers of the free ones are the buffers' handles, so that no address is ever compared.
#[derive(Debug, Clone)]
pub struct Buffers(Rc<RefCell<Free>>);

#[derive(Debug)]
struct Free {
    numbers: Vec<usize>,
    all: usize,
    /// Number of free buffers that may not be taken: another user has them.
    withheld: usize,
}

impl Buffers {
    pub fn new(all: usize) -> Buffers {
        let numbers = (1..=all).rev().collect();
        Buffers(Rc::new(RefCell::new(Free {
            numbers,
            all,
            withheld: 0,
        })))
    }

    /// Number of buffers that somebody holds.
    pub fn in_use(&self) -> usize {
        let free = self.0.borrow();
        free.all - free.numbers.len()
    }

    /// Leaves only `left` buffers to be taken; `None`: all that are free.
    pub fn leave(&self, left: Option<usize>) {
        let mut free = self.0.borrow_mut();
        free.withheld = left.map_or(0, |left| free.numbers.len().saturating_sub(left));
    }

    pub fn take(&self) -> Option<Buf> {
        let mut free = self.0.borrow_mut();
        if free.numbers.len() <= free.withheld {
            return None;
        }
        let number = free.numbers.pop()?;
        Some(Buf(Box::new(Inner {
            number,
            bytes: Vec::new(),
            start: 0,
            home: self.clone(),
        })))
    }
}

impl Pool<Buf> for Buffers {
    fn alloc_bulk<const N: usize>(&self, row: &mut ArrayVec<Buf, N>, n: usize) -> bool {
        if row.remaining_capacity() < n {
            return false;
        }
        let all: Vec<Buf> = std::iter::from_fn(|| self.take()).take(n).collect();
        let enough = all.len() == n;
        if enough {
            row.extend(all);
        }
        enough
    }
}

/// Frame in a buffer of the pool.
#[derive(Debug)]
pub struct Buf(Box<Inner>);

#[derive(Debug)]
struct Inner {
    number: usize,
    bytes: Vec<u8>,
    start: usize,
    home: Buffers,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.home.0.borrow_mut().numbers.push(self.number);
    }
}

impl Buffer for Buf {
    fn fill(&mut self, bytes: &[u8]) -> bool {
        let inner = &mut self.0;
        inner.bytes.clear();
        inner.bytes.resize(HEADROOM, 0);
        inner.bytes.extend_from_slice(bytes);
        inner.start = HEADROOM;
        bytes.len() <= ROOM
    }
}

impl FrameBuf for Buf {
    fn data(&self) -> &[u8] {
        &self.0.bytes[self.0.start..]
    }

    fn data_mut(&mut self) -> &mut [u8] {
        let inner = &mut *self.0;
        &mut inner.bytes[inner.start..]
    }

    fn prepend(&mut self, n: usize) -> bool {
        let start = self.0.start.checked_sub(n);
        self.0.start = start.unwrap_or(self.0.start);
        start.is_some()
    }

    fn trim_front(&mut self, n: usize) -> bool {
        let fits = n <= self.data().len();
        if fits {
            self.0.start += n;
        }
        fits
    }

    fn truncate(&mut self, n: usize) -> bool {
        let inner = &mut *self.0;
        let fits = inner.start + n <= inner.bytes.len();
        if fits {
            inner.bytes.truncate(inner.start + n);
        }
        fits
    }

    fn handle(&self) -> usize {
        self.0.number
    }
}

/// Frame that the switch has put on a wire.
#[derive(Debug)]
pub struct Sent {
    pub port: usize,
    /// Time at which its last bit leaves.
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Number of times that the link had gone down before.
    pub flaps: u32,
}

/// Device of one port.
#[derive(Debug)]
pub struct Card {
    pub port: usize,
    /// Bit/s of the link.
    pub rate: u64,
    pub up: bool,
    pub flaps: u32,
    pub rx: Vec<VecDeque<Buf>>,
    pub rx_descriptors: u16,
    /// Frames lost because a receive ring, or the pool, had no room.
    pub missed: u64,
    /// Frames received into the rings.
    pub received: u64,
    /// Frames that the transmit ring has, each with the time at which it has left.
    tx: VecDeque<(u64, Buf)>,
    pub tx_descriptors: u16,
    /// True if the device takes no frames.
    pub stuck: bool,
    /// True if the driver has `tx_descriptor_status`, and answers as DPDK documents it.
    pub answers: bool,
    /// Time in ps at which the wire has sent all that was given.
    free_at: u64,
    /// Frames taken from the switch, and of these lost as the link was down.
    pub taken: u64,
    pub lost: u64,
    time: Rc<Cell<u64>>,
    /// Frames that left since the world last looked.
    pub out: Vec<Sent>,
}

/// A card that its queues share with the world.
pub type Shared = Rc<RefCell<Card>>;

impl Card {
    pub fn new(port: usize, rate: u64, queues: usize, time: Rc<Cell<u64>>) -> Card {
        Card {
            port,
            rate,
            up: true,
            flaps: 0,
            rx: (0..queues).map(|_| VecDeque::new()).collect(),
            rx_descriptors: 2_048,
            missed: 0,
            received: 0,
            tx: VecDeque::new(),
            tx_descriptors: 1_024,
            stuck: false,
            answers: true,
            free_at: 0,
            taken: 0,
            lost: 0,
            time,
            out: Vec::new(),
        }
    }

    /// Receives a frame into the ring of a queue.
    pub fn receive(&mut self, queue: usize, bytes: &[u8], pool: &Buffers) {
        let most = usize::from(self.rx_descriptors);
        let ring = self.rx.get_mut(queue).filter(|ring| ring.len() < most);
        match ring.zip(pool.take()) {
            Some((ring, mut buf)) => {
                buf.fill(bytes);
                ring.push_back(buf);
                self.received += 1;
            }
            None => self.missed += 1,
        }
    }

    /// Takes the link down or up. What is on the wire when it goes down is lost.
    pub fn set_link(&mut self, up: bool) {
        self.flaps += u32::from(self.up && !up);
        self.up = up;
    }

    /// Frees the buffers of the frames that have left.
    pub fn clean(&mut self) {
        let now = self.time.get();
        while self.tx.front().is_some_and(|(end, _)| *end <= now) {
            self.tx.pop_front();
        }
    }

    /// Number of frames in the receive rings.
    pub fn waiting(&self) -> usize {
        self.rx.iter().map(VecDeque::len).sum()
    }

    /// Number of buffers in the transmit ring.
    pub fn unsent(&self) -> usize {
        self.tx.len()
    }

    fn send(&mut self, frames: &mut FrameVec<Buf>, most: usize) -> usize {
        self.clean();
        let free = usize::from(self.tx_descriptors).saturating_sub(self.tx.len());
        let most = if self.stuck { 0 } else { most };
        let count = free.min(most).min(frames.len());
        let now = self.time.get();
        for buf in frames.drain(..count) {
            let bits = u64::from(wire_len(buf.data().len())) * 8;
            let begin = self.free_at.max(now * 1_000);
            self.free_at = begin + bits * 1_000_000_000_000 / self.rate;
            let end = self.free_at.div_ceil(1_000);
            self.taken += 1;
            if self.up {
                self.out.push(Sent {
                    port: self.port,
                    at: end,
                    bytes: buf.data().to_vec(),
                    flaps: self.flaps,
                });
            } else {
                self.lost += 1;
            }
            self.tx.push_back((end, buf));
        }
        count
    }
}

/// Receive queue of a card.
#[derive(Debug)]
pub struct RxQueue(pub Shared, pub usize);

impl Receive<Buf> for RxQueue {
    fn descriptors(&self) -> u16 {
        self.0.borrow().rx_descriptors
    }

    fn receive(&mut self, frames: &mut FrameVec<Buf>, most: usize) -> usize {
        let mut card = self.0.borrow_mut();
        let Some(ring) = card.rx.get_mut(self.1) else {
            return 0;
        };
        let count = ring.len().min(most).min(frames.remaining_capacity());
        frames.extend(ring.drain(..count));
        count
    }

    fn holds_more_than(&self, frames: u16) -> Option<bool> {
        let card = self.0.borrow();
        let ring = card.rx.get(self.1)?;
        Some(ring.len() > usize::from(frames))
    }

    fn arm(&self, _on: bool) {}
}

/// Transmit queue of a card.
#[derive(Debug)]
pub struct TxQueue(pub Shared);

impl Device<Buf> for TxQueue {
    fn descriptors(&self) -> u16 {
        self.0.borrow().tx_descriptors
    }

    fn is_full(&self, offset: u16) -> Option<bool> {
        let mut card = self.0.borrow_mut();
        card.clean();
        // Offset 0 is the next descriptor to be filled, so the last filled is at the end of the ring.
        let empty = card.tx_descriptors.checked_sub(offset)?;
        (card.answers && empty > 0).then(|| card.tx.len() >= usize::from(empty))
    }

    fn send(&mut self, frames: &mut FrameVec<Buf>, most: usize) -> usize {
        self.0.borrow_mut().send(frames, most)
    }

    fn length(&self, frame: &Buf) -> usize {
        frame.data().len()
    }
}
