//! Profiles as the C side uses them.

use std::ffi::{CStr, c_char};

use npcc_card::answers::{Check, Field, Prerequisite};
use npcc_card::{Profile, Shape};

use crate::answers::{Answers, place};

/// Fields of a call about pauses that drivers check; as `struct pause_values`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PauseValues {
    high_water: u32,
    low_water: u32,
    pause_time: u16,
    send_xon: u16,
    forward: bool,
    autoneg: bool,
    pfc_on: bool,
    link_pause_on: bool,
}

/// Shape of a received frame; as `struct pieces`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pieces {
    each: u32,
    chained: bool,
    lost: bool,
}

/// Autonegotiation of pauses, as `flow_ctrl_get` reports it.
const AUTONEG: bool = true;

/// Finds a profile by its name, with the second answers of the rows named in `other` (with `+` between them; may be null). Null where there
/// is none.
///
/// # Safety
/// Both are C strings, `other` or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_find(
    name: *const c_char,
    other: *const c_char,
) -> *const Profile {
    // SAFETY: the caller's contract.
    let (name, other) = unsafe { (text(name), text(other)) };
    let other: Vec<&str> = other.split('+').collect();
    Profile::named(name).map_or(std::ptr::null(), |profile| {
        // A device may come again: what a test leaves behind is little.
        std::ptr::from_ref(Box::leak(Box::new(profile.with_other(&other))))
    })
}

/// Error of a probe on a machine that lacks `thing`; 0 where the driver does not need it.
///
/// # Safety
/// `profile` came from `profile_find`, and `thing` is a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_lacks(
    profile: *const Profile,
    thing: *const c_char,
) -> i32 {
    // SAFETY: the caller's contract: a profile lives for ever.
    let (profile, thing) = unsafe { (&*profile, text(thing)) };
    let named = |needs: Prerequisite| match needs {
        Prerequisite::Ddp => "ddp",
        Prerequisite::Verbs => "verbs",
    };
    let mut needs = profile.probe_needs.get().iter();
    needs
        .find(|need| named(need.needs) == thing)
        .map_or(0, |need| need.error.code())
}

/// Writes down a profile's answers.
///
/// # Safety
/// `profile` came from `profile_find`, and `answers` is the caller's to write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_answers(profile: *const Profile, answers: *mut Answers) {
    // SAFETY: the caller's contract: a profile lives for ever.
    let profile = unsafe { &*profile };
    // SAFETY: the caller's contract.
    unsafe { answers.write(Answers::of(profile)) };
}

/// Returns true if the driver receives into chains without a request.
///
/// # Safety
/// `profile` came from `profile_find`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_scatters(
    profile: *const Profile,
    buffer: u32,
    mtu: u16,
) -> bool {
    // SAFETY: the caller's contract: a profile lives for ever.
    unsafe { &*profile }.scatters(buffer, mtu)
}

/// Returns the error with which setup of a receive queue fails, or 0.
///
/// # Safety
/// `profile` came from `profile_find`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_refuses(
    profile: *const Profile,
    buffer: u32,
    mtu: u16,
    scatters: bool,
) -> i32 {
    // SAFETY: the caller's contract: a profile lives for ever.
    let profile = unsafe { &*profile };
    profile
        .refuses(buffer, mtu, scatters)
        .map_or(0, |outcome| outcome.code())
}

/// Returns the shape in which a frame is received.
///
/// # Safety
/// `profile` came from `profile_find`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_receives(
    profile: *const Profile,
    length: u32,
    buffer: u32,
    mtu: u16,
    scatters: bool,
) -> Pieces {
    // SAFETY: the caller's contract: a profile lives for ever.
    let profile = unsafe { &*profile };
    let (each, chained, lost) = match profile.shape(length, buffer, mtu, scatters) {
        Shape::Lost => (length, false, true),
        Shape::Whole => (length, false, false),
        Shape::Chained(each) => (each, true, false),
        Shape::Split(each) => (each, false, false),
    };
    Pieces {
        each,
        chained,
        lost,
    }
}

/// Returns the error with which a call about pauses (`enum moment`) refuses these values, or 0.
///
/// # Safety
/// `profile` came from `profile_find`, and `values` is the caller's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn profile_pause_check(
    profile: *const Profile,
    call: u8,
    values: *const PauseValues,
) -> i32 {
    // SAFETY: the caller's contract: a profile lives for ever.
    let (profile, values) = unsafe { (&*profile, *values) };
    let refuses = |check: &&Check| place(check.call) == call && values.are_refused(check.field);
    let mut checks = profile.pause_checks.get().iter();
    checks.find(refuses).map_or(0, |check| check.error.code())
}

impl PauseValues {
    fn are_refused(self, field: Field) -> bool {
        match field {
            Field::MacCtrlFrameFwd => self.forward,
            Field::Autoneg => self.autoneg,
            Field::AutonegDiffers => self.autoneg != AUTONEG,
            Field::PauseTimeZero => self.pause_time == 0,
            Field::HighWater => self.high_water != 0,
            Field::LowWater => self.low_water != 0,
            Field::SendXon => self.send_xon != 0,
            Field::WaterOrder => self.high_water < self.low_water,
            Field::WaterNotAbove => self.high_water <= self.low_water,
            Field::PfcOn => self.pfc_on,
            Field::LinkPauseOn => self.link_pause_on,
        }
    }
}

/// Text of a C string; nothing for null or bytes that are no text.
///
/// # Safety
/// The pointer is null, or to a C string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> &'a str {
    if pointer.is_null() {
        return "";
    }
    // SAFETY: the caller's contract.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .unwrap_or_default()
}
