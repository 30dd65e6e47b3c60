//! How a worker counts a [packet train](npcc_pipeline::stage::train): most packets of paired flows are only counted, and those
//! need a dozen words.
//!
//! Law: counts, records and slots are as if the packets had been counted one by one.

use npcc_pipeline::frame::{FlowSlot, FrameBuf};
use npcc_pipeline::stage::packet::Packet;
use npcc_pipeline::stage::train::{Car, Kin};
use npcc_pipeline::units::{Nanos, WIRE_OVERHEAD};
use npcc_pipeline::wire::bth::{RoceClass, Traits};

use super::pace::is_round;
use super::tap::{ACK_REQ, PSN_MASK, Watch};
use super::warm::Hint;
use super::{FlowCache, place};
use crate::key::{low32, words_v4};

impl FlowCache {
    /// Counts a train, and shows of it what is due.
    #[inline]
    pub(super) fn enqueue_train<B: FrameBuf>(
        &mut self,
        frames: &[B],
        cars: &mut [Car],
        kin: &Kin,
        now: Nanos,
    ) {
        let watch = self.watch(&kin.meta, now);
        if watch.many {
            self.note(cars.iter_mut().map(Hint::of_car), watch.queue);
            self.warm(cars.iter().map(|car| car.slot));
        }
        let (mut frames, mut cars) = (frames, cars);
        loop {
            let counted = self.count_train(cars, &watch);
            let (Some([buf, frames_left @ ..]), Some([car, cars_left @ ..])) =
                (frames.get(counted..), cars.get_mut(counted..))
            else {
                break;
            };
            // Its headers have to be looked at again, as any other packet's.
            let mut packet = Packet::NOTHING;
            packet.dress_counted(car, kin);
            self.count_packet(buf, &mut packet, &watch);
            car.slot = packet.meta.slot;
            (frames, cars) = (frames_left, cars_left);
        }
    }

    /// Counts frames of a train, as far as [`FlowCache::count_packet`] would only count them; returns how many.
    #[inline]
    fn count_train(&self, cars: &mut [Car], watch: &Watch) -> usize {
        if watch.wanted & RoceClass::Data.bit() == 0 {
            0
        } else if watch.many {
            self.count_cars::<true>(cars, watch)
        } else {
            self.count_cars::<false>(cars, watch)
        }
    }

    #[inline(never)]
    fn count_cars<const MANY: bool>(&self, cars: &mut [Car], watch: &Watch) -> usize {
        let (slots, refresh) = (&*self.shared.slots, self.pace.refresh);
        let (queue, age, now) = (watch.queue, watch.age, watch.now);
        // Of the slots' own length the compiler knows that it is above every place.
        let Some(mask) = slots.len().checked_sub(1) else {
            return 0;
        };
        let mut counted = 0;
        for car in cars {
            let words = words_v4(car.addresses, car.dest_qp(), queue);
            let guess = if MANY {
                car.slot.0 as usize
            } else {
                let [tail, addresses, ..] = words;
                place(self.hasher.of_v4([tail, addresses]), mask)
            };
            let Some(shared) = slots.get(guess) else {
                break;
            };
            if !shared.is(&words) || !shared.is_quiet(car.src_port, age, refresh) {
                break;
            }
            if MANY && is_round(shared.packets().wrapping_add(1)) {
                break;
            }
            let psn = car.ack_psn();
            if psn & ACK_REQ != 0 && !shared.passes(psn & PSN_MASK) {
                break;
            }
            shared.contribute(u64::from(car.len) + u64::from(WIRE_OVERHEAD));
            if car.traits.any(Traits::REQUEST) {
                shared.request(psn);
            }
            shared.count(now);
            car.slot = FlowSlot(low32(guess as u64));
            counted += 1;
        }
        counted
    }
}
