//! The model of one started card, as the C side calls it.

use std::ffi::c_void;

use npcc_card::{Answer, Card, Pauses, Picos, Profile, TxProfile};

/// Function of the C side that takes a frame which has left a queue.
type Sent = extern "C" fn(context: *mut c_void, queue: u16);

/// Card between start and stop.
pub(crate) struct Double {
    model: Card,
    rings: u16,
    pauses: Pauses,
    /// Time up to which the wire has been advanced.
    now: Picos,
}

impl Double {
    fn new(profile: TxProfile, rings: u16, descriptors: u16, rate: u64) -> Double {
        Double {
            model: Card::new(profile, rings, descriptors, rate),
            rings,
            pauses: Pauses::new(rate),
            now: 0,
        }
    }

    /// Advances the wire to `now`, past each end of a pause.
    fn advance(&mut self, now: Picos, mut sent: impl FnMut(u16, u64)) {
        while let Some(end) = self.pauses.next_end(self.now).filter(|end| *end <= now) {
            self.now = end;
            let held = self.pauses.held(end, self.rings);
            self.model.hold(held, end, &mut sent);
        }
        self.now = self.now.max(now);
        self.model.advance(self.now, sent);
    }

    fn hear(&mut self, frame: &[u8], now: Picos, mut sent: impl FnMut(u16, u64)) {
        self.advance(now, &mut sent);
        self.pauses.hear(frame, self.now);
        let held = self.pauses.held(self.now, self.rings);
        self.model.hold(held, self.now, sent);
    }
}

/// Creates the model of a card.
///
/// # Safety
/// `profile` came from `profile_find`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_new(
    profile: *const Profile,
    rings: u16,
    descriptors: u16,
    rate: u64,
) -> *mut Double {
    // SAFETY: the caller's contract: a profile lives for ever.
    let profile = unsafe { &*profile };
    let double = Double::new(profile.tx(), rings, descriptors, rate);
    Box::into_raw(Box::new(double))
}

/// Frees the model.
///
/// # Safety
/// `card` is null or came from `card_new`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_free(card: *mut Double) {
    if !card.is_null() {
        // SAFETY: the caller's contract: a box that was given away once.
        drop(unsafe { Box::from_raw(card) });
    }
}

/// Lets the wire send what it can until `now`.
///
/// # Safety
/// `card` is a live model that only this thread uses, and `sent` takes `context`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_advance(
    card: *mut Double,
    now: Picos,
    sent: Sent,
    context: *mut c_void,
) {
    // SAFETY: the caller's contract.
    let card = unsafe { &mut *card };
    card.advance(now, |queue, _| sent(context, queue));
}

/// Gives a burst of frames with these wire lengths to a queue; returns the number that the driver takes.
///
/// # Safety
/// `card` is a live model that only this thread uses, and there are `count` lengths.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_burst(
    card: *mut Double,
    queue: u16,
    lengths: *const u32,
    count: u16,
) -> u16 {
    // SAFETY: the caller's contract.
    let (card, lengths) = unsafe {
        (
            &mut *card,
            std::slice::from_raw_parts(lengths, usize::from(count)),
        )
    };
    // At the time of the last advance: what has left meanwhile is reported by the next one.
    let now = card.now;
    let taken = card.model.burst(queue, lengths.iter().copied(), now);
    u16::try_from(taken).unwrap_or(count)
}

/// Number of frames of a queue whose buffers the driver has freed.
///
/// # Safety
/// `card` is a live model that only this thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_freed(card: *const Double, queue: u16) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { &*card }.model.ring(queue).freed()
}

/// Number of frames that a queue holds.
///
/// # Safety
/// `card` is a live model that only this thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_frames(card: *const Double, queue: u16) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { &*card }.model.ring(queue).frames()
}

/// Wire bytes that a queue holds.
///
/// # Safety
/// `card` is a live model that only this thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_bytes(card: *const Double, queue: u16) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { &*card }.model.ring(queue).bytes()
}

/// Answers about a descriptor: 1 full, 0 done, -1 none.
///
/// # Safety
/// `card` is a live model that only this thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_status(card: *const Double, queue: u16, offset: u16) -> i32 {
    // SAFETY: the caller's contract.
    match unsafe { &*card }.model.ring(queue).status(offset) {
        Answer::Full => 1,
        Answer::Done => 0,
        Answer::Unsupported => -1,
    }
}

/// Sets which pauses the MAC honors.
///
/// # Safety
/// `card` is a live model that only this thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_honors(card: *mut Double, link: bool, priorities: u8) {
    // SAFETY: the caller's contract.
    unsafe { &mut *card }.pauses.honor(link, priorities);
}

/// Takes note of a MAC control frame of the peer.
///
/// # Safety
/// `card` is a live model that only this thread uses, the frame has so many bytes, and `sent` takes `context`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn card_hears(
    card: *mut Double,
    frame: *const u8,
    length: u32,
    now: Picos,
    sent: Sent,
    context: *mut c_void,
) {
    // SAFETY: the caller's contract.
    let (card, frame) = unsafe {
        (
            &mut *card,
            std::slice::from_raw_parts(frame, length as usize),
        )
    };
    card.hear(frame, now, |queue, _| sent(context, queue));
}
