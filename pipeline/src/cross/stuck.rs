//! What of a port's last burst waits for room: frames one by one, or a train as it is. The port's queue is not polled
//! meanwhile, so it is never both.

use arrayvec::ArrayVec;

use super::Crossing;
use super::road::{Convoy, Outward, Party};
use crate::stage::train::{Car, Cars, cars};
use crate::units::{BURST, PortId};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Stuck<B> {
    /// Oldest first.
    pub(super) party: Party<B>,
    train: Option<Convoy>,
    frames: ArrayVec<B, BURST>,
    cars: Cars,
}

impl<B> Default for Stuck<B> {
    fn default() -> Stuck<B> {
        Stuck {
            party: Party::new(),
            train: None,
            frames: ArrayVec::new(),
            cars: cars(),
        }
    }
}

impl<B> Stuck<B> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.party.is_empty() && self.train.is_none()
    }

    /// Keeps a train; `frames` is empty afterwards.
    pub(super) fn keep_train(
        &mut self,
        convoy: Convoy,
        frames: &mut ArrayVec<B, BURST>,
        cars: &[Car],
    ) {
        self.train = Some(convoy);
        self.frames = std::mem::take(frames);
        for (mine, car) in self.cars.iter_mut().zip(cars) {
            *mine = *car;
        }
    }

    /// The port its train leaves by.
    pub(super) fn train_to(&self) -> Option<PortId> {
        self.train.map(|convoy| convoy.kin.meta.egress)
    }

    /// Hands the train over if there is room for it; returns its frames.
    pub(super) fn send_train(&mut self, way: &mut Outward<B>) -> usize {
        let (frames, cars) = (&mut self.frames, &self.cars);
        let sent = self
            .train
            .take_if(|convoy| way.send_train(*convoy, frames, cars));
        sent.map_or(0, |convoy| convoy.frames)
    }

    /// The train, for a stop.
    pub(crate) fn take_train(&mut self) -> Option<(Convoy, ArrayVec<B, BURST>, &Cars)> {
        let convoy = self.train.take()?;
        Some((convoy, std::mem::take(&mut self.frames), &self.cars))
    }

    /// The other frames, for a stop.
    pub(crate) fn take_party(&mut self) -> impl Iterator<Item = Crossing<B>> + '_ {
        self.party.drain(..)
    }
}
