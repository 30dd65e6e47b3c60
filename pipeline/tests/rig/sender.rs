//! Test model of a peer on a long cable that obeys pauses.

use std::collections::VecDeque;

use npcc_pipeline::units::{BitRate, Nanos};
use npcc_pipeline::wire::mac_control::time_of;

use super::wire;

/// Response time of a 100G station in 802.3, in quanta.
pub(crate) const RESPONSE: u16 = 394;
/// Speed of light in fibre, metres per second.
pub(crate) const LIGHT: u64 = 198_000_000;

/// Sender at the far end of a cable: sends at line rate until a pause reaches it.
pub(crate) struct Sender {
    pub(crate) port: u8,
    rate: BitRate,
    len: usize,
    pub(crate) delay: u64,
    credit: u64,
    /// Frames on the cable: time of arrival, number.
    pub(crate) cable: VecDeque<(u64, usize)>,
    /// Pauses on their way back: the time they take effect, and the time until which they hold (now: XON).
    orders: VecDeque<(u64, u64)>,
    paused_until: u64,
    pub(crate) sent: u64,
}

impl Sender {
    pub(crate) fn new(port: u8, rate: BitRate, len: usize, km: u64) -> Sender {
        Sender {
            port,
            rate,
            len,
            delay: km * 1_000 * 1_000_000_000 / LIGHT,
            credit: 0,
            cable: VecDeque::new(),
            orders: VecDeque::new(),
            paused_until: 0,
            sent: 0,
        }
    }

    /// Advances the time by `lasts`; returns the number of frames that arrive at the switch.
    pub(crate) fn turn(&mut self, now: u64, lasts: u64, sending: bool) -> usize {
        while let Some((at, until)) = self.orders.front().copied()
            && at <= now
        {
            self.paused_until = until;
            self.orders.pop_front();
        }
        if sending && now >= self.paused_until {
            self.credit += self.rate.bytes_in(Nanos(lasts));
            let frames = self.credit / wire(self.len);
            self.credit %= wire(self.len);
            if frames > 0 {
                self.sent += frames;
                self.cable.push_back((now + self.delay, frames as usize));
            }
        }
        let mut arrived = 0;
        while let Some((at, frames)) = self.cable.front().copied()
            && at <= now
        {
            arrived += frames;
            self.cable.pop_front();
        }
        arrived
    }

    /// Records that the switch sent a PFC frame at `now`.
    pub(crate) fn hear(&mut self, xoff: bool, now: u64) {
        let at = now + self.delay + time_of(RESPONSE, self.rate).0;
        let until = if xoff {
            at + time_of(u16::MAX, self.rate).0
        } else {
            at
        };
        self.orders.push_back((at, until));
    }
}
