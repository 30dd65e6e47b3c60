//! Transmit ring of one queue: descriptors, reports of the card, and the driver's answers about them.

use std::collections::VecDeque;

use crate::answers::Frees;

/// Style in which a driver answers `rte_eth_tx_descriptor_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The query is rounded up to a multiple of the reporting distance, which is one past the descriptor that requests the report: e1000,
    /// ixgbe, i40e, ice, iavf (`ice_rxtx.c:2344-2361`).
    Rounded,
    /// The offset counts from the oldest frame that the driver has not seen confirmed, and the query looks for new reports first: mlx5
    /// (`mlx5_tx.c:268-278`).
    FromOldest,
    /// The offset counts from the oldest frame whose buffer the driver has not freed; of those the ones that the card has reported are done,
    /// but are freed at the next burst only: bnxt (`bnxt_ethdev.c:3308-3352`, `bnxt_txr.c:479-519`).
    FromFreed,
    /// The offset counts from the next descriptor to be filled, as DPDK documents it, and each descriptor is confirmed: hns3, igb.
    Exact,
    /// The driver has no such call.
    Absent,
}

/// Requests of a driver for reports of sent frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reports {
    /// One for every frame.
    Each,
    /// One for every so-many-th descriptor of the ring, by index: ixgbe, i40e, ice, iavf (`ice_rxtx.c:1035`).
    ByIndex(u16),
    /// One as soon as so many descriptors were filled since the last request: e1000 (`em_rxtx.c:578-591`), and the vector paths of ice and
    /// i40e, which differ from [`Reports::ByIndex`] only in rings that are no multiple of it.
    ByCount(u16),
    /// One at the end of a burst, if at least so many frames were given since the last request: mlx5 (`mlx5_tx.h:720-738`, 32), so that the
    /// last few frames are never reported alone; 1: bnxt (`bnxt_txr.c:566`).
    ByBurst(u16),
}

/// Behaviour of a driver's transmit side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxProfile {
    /// Style of its answers.
    pub status: Status,
    /// Requests for reports.
    pub reports: Reports,
    /// Number of free descriptors below which sent buffers are freed, at the next burst; [`u16::MAX`]: at every burst.
    pub free_below: u16,
    /// Number of descriptors that are never filled.
    pub unused: u16,
    /// Buffers that a burst frees.
    pub frees: Frees,
}

/// Answer of a driver about one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `RTE_ETH_TX_DESC_FULL`.
    Full,
    /// `RTE_ETH_TX_DESC_DONE`.
    Done,
    /// The driver has no such call, or the offset is beyond the ring.
    Unsupported,
}

/// Transmit ring. Frames are numbered from 0 in the order in which they are given.
#[derive(Debug)]
pub struct TxRing {
    profile: TxProfile,
    descriptors: u16,
    /// Number of frames given, sent by the card, and whose descriptors the driver may fill again.
    given: u64,
    sent: u64,
    cleaned: u64,
    /// Numbers of frames up to which a report was seen, and whose descriptors the driver has not cleaned yet, in order.
    uncleaned: VecDeque<u64>,
    /// Numbers of frames up to which a report was requested and not yet seen, in order.
    requested: VecDeque<u64>,
    /// Number of frames up to which the card has reported.
    reported: u64,
    /// Number of frames up to which the latest report was requested.
    last_request: u64,
    /// Done bit of each descriptor, for [`Status::Rounded`].
    done: Vec<bool>,
    /// Wire bytes of the frames that are not sent yet, with the time each was given.
    waiting: VecDeque<(u32, u64)>,
    bytes: u64,
}

impl TxRing {
    /// Creates an empty ring.
    #[must_use]
    pub fn new(profile: TxProfile, descriptors: u16) -> TxRing {
        TxRing {
            profile,
            descriptors,
            given: 0,
            sent: 0,
            cleaned: 0,
            uncleaned: VecDeque::new(),
            requested: VecDeque::new(),
            reported: 0,
            last_request: 0,
            done: vec![true; usize::from(descriptors)],
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Number of descriptors.
    #[must_use]
    pub fn descriptors(&self) -> u16 {
        self.descriptors
    }

    /// Frames that the card holds: given and not sent.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.given - self.sent
    }

    /// Wire bytes of the frames that the card holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of frames ever sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of frames whose buffers the driver has freed: always the oldest.
    #[must_use]
    pub fn freed(&self) -> u64 {
        match self.profile.frees {
            Frees::Refilled => self.given.saturating_sub(u64::from(self.descriptors)),
            Frees::Reported | Frees::Needed | Frees::Batches(_) => self.cleaned,
        }
    }

    /// Number of buffers that the driver holds.
    #[must_use]
    pub fn buffers(&self) -> u64 {
        self.given - self.freed()
    }

    /// Wire bytes of the oldest frame that is not sent, and the time it was given.
    pub(crate) fn oldest(&self) -> Option<(u32, u64)> {
        self.waiting.front().copied()
    }

    /// Begins a burst: the driver cleans descriptors of sent frames if few are free. Returns the number of frames it takes.
    pub fn begin_burst(&mut self) -> usize {
        let frees = self.profile.frees;
        if frees == Frees::Refilled || self.free() < u64::from(self.profile.free_below) {
            let batches = match frees {
                Frees::Batches(batches) => usize::from(batches),
                _ => usize::MAX,
            };
            let batches = batches.min(self.uncleaned.len());
            let cleaned = self.uncleaned.drain(..batches).next_back();
            self.cleaned = cleaned.unwrap_or(self.cleaned);
        }
        let free = self.free()
            + match frees {
                Frees::Needed => self.reported - self.cleaned,
                _ => 0,
            };
        usize::try_from(free).unwrap_or(usize::MAX)
    }

    /// Number of descriptors that the driver can fill.
    fn free(&self) -> u64 {
        u64::from(self.descriptors - self.profile.unused) - (self.given - self.cleaned)
    }

    /// Adds a frame of `length` wire bytes to a burst that has room for it.
    pub(crate) fn give(&mut self, length: u32, now: u64) {
        if self.free() == 0 {
            self.cleaned = self.uncleaned.pop_front().unwrap_or(self.cleaned);
        }
        let index = self.index(self.given);
        if let Some(done) = self.done.get_mut(index) {
            *done = false;
        }
        self.waiting.push_back((length, now));
        self.bytes += u64::from(length);
        self.given += 1;
        match self.profile.reports {
            Reports::Each => self.request(),
            Reports::ByIndex(every) if (index + 1).is_multiple_of(usize::from(every)) => {
                self.request();
            }
            Reports::ByCount(every) if self.given - self.last_request >= u64::from(every) => {
                self.request();
            }
            _ => {}
        }
    }

    /// Ends a burst.
    pub fn end_burst(&mut self) {
        if let Reports::ByBurst(every) = self.profile.reports
            && self.given - self.last_request >= u64::from(every)
        {
            self.request();
        }
    }

    fn request(&mut self) {
        self.last_request = self.given;
        self.requested.push_back(self.given);
    }

    /// Takes the oldest frame off the ring: the card has sent it. Returns its number.
    pub(crate) fn send(&mut self) -> Option<u64> {
        let (length, _) = self.waiting.pop_front()?;
        self.bytes -= u64::from(length);
        let number = self.sent;
        self.sent += 1;
        while self
            .requested
            .front()
            .is_some_and(|upto| *upto <= self.sent)
        {
            self.reported = self.requested.pop_front().unwrap_or(self.reported);
            self.uncleaned.push_back(self.reported);
            let index = self.index(self.reported - 1);
            if let Some(done) = self.done.get_mut(index) {
                *done = true;
            }
        }
        Some(number)
    }

    /// Answers `rte_eth_tx_descriptor_status` for `offset`.
    #[must_use]
    pub fn status(&self, offset: u16) -> Answer {
        if offset >= self.descriptors {
            return Answer::Unsupported;
        }
        let full = match self.profile.status {
            Status::Absent => return Answer::Unsupported,
            Status::FromOldest => u64::from(offset) < self.given - self.reported,
            Status::FromFreed => (self.reported - self.cleaned..self.given - self.cleaned)
                .contains(&u64::from(offset)),
            Status::Exact => {
                self.given + u64::from(offset) >= self.reported + u64::from(self.descriptors)
            }
            Status::Rounded => {
                let every = match self.profile.reports {
                    Reports::ByIndex(every) | Reports::ByCount(every) | Reports::ByBurst(every) => {
                        usize::from(every)
                    }
                    Reports::Each => 1,
                };
                let wanted = self.index(self.given) + usize::from(offset);
                let rounded = wanted.next_multiple_of(every) % self.done.len();
                !self.done.get(rounded).copied().unwrap_or(true)
            }
        };
        if full { Answer::Full } else { Answer::Done }
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number % u64::from(self.descriptors)).unwrap_or(0)
    }
}
