//! Time from the processor's time-stamp counter.
//!
//! Law: conversion is monotone (a later count never gives an earlier time) and costs one
//! multiplication. The counter is assumed invariant and synchronous over the cores, as it is on
//! every machine DPDK supports. It is not wall time and says nothing across reboots.

use std::time::{Duration, Instant};

use crate::eal::Eal;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Count of TSC cycles since an arbitrary moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsc(u64);

impl Tsc {
    /// Reads the counter. About 10 ns: read it once per burst, not once per packet.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self(Self::now_cycles())
    }

    /// Reads the bare counter, in cycles.
    #[inline]
    #[must_use]
    pub fn now_cycles() -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
        unsafe {
            core::arch::x86_64::_rdtsc()
        }
        #[cfg(target_arch = "aarch64")]
        {
            let count: u64;
            // SAFETY: CNTVCT_EL0 is readable from user space under Linux and reading it touches no
            // memory.
            unsafe {
                core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack));
            }
            count
        }
    }

    /// Creates it from a count taken elsewhere.
    #[inline]
    #[must_use]
    pub fn from_cycles(cycles: u64) -> Self {
        Self(cycles)
    }

    /// Returns the count, in cycles.
    #[inline]
    #[must_use]
    pub fn cycles(self) -> u64 {
        self.0
    }
}

/// Simultaneous reading of the counter and the system's clock: two of them give the counter's rate.
///
/// EAL rounds its measurement to 10 MHz where the processor does not report the rate (`eal_timer.c`), which may be off by 0.2 %: twice
/// the margin that a shaper keeps below its link.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    tsc: Tsc,
    at: Instant,
}

/// Number of readings of both clocks, of which the fastest is used.
const READINGS: usize = 16;
/// Minimum time between calibrations; a shorter one is less exact than EAL's measurement.
const LEAST: Duration = Duration::from_millis(50);

impl Calibration {
    /// Takes a reading now.
    #[must_use]
    pub fn now() -> Self {
        let read = || {
            let before = Tsc::now();
            let at = Instant::now();
            let took = Tsc::now().0.saturating_sub(before.0);
            let middle = Self {
                tsc: Tsc(before.0 + took / 2),
                at,
            };
            (took, middle)
        };
        let mut best = read();
        for _ in 1..READINGS {
            let next = read();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    /// Returns the cycles per second between `self` and `later`; `None` when less than 50 ms lie between.
    #[must_use]
    pub fn hz(&self, later: &Self) -> Option<u64> {
        let passed = later.at.checked_duration_since(self.at)?;
        if passed < LEAST {
            return None;
        }
        let cycles = u128::from(later.tsc.0.checked_sub(self.tsc.0)?);
        u64::try_from(cycles * u128::from(NANOS_PER_SECOND) / passed.as_nanos()).ok()
    }
}

/// Converter of counts to nanoseconds since the clock was made. Copy it to every thread that needs
/// time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
    hz: u64,
    /// Nanoseconds per cycle, times 2^shift, rounded down; uses all 64 bits.
    mult: u64,
    shift: u32,
}

impl Clock {
    /// Creates a clock at the rate EAL measured, whose zero is now.
    #[must_use]
    pub fn new(_eal: &Eal) -> Self {
        // SAFETY: a started EAL, which the argument proves, has measured the rate.
        Self::at(unsafe { dpdk_sys::rte_get_tsc_hz() }.max(1), Tsc::now())
    }

    /// Creates a clock at the rate the counter had since `begin`, whose zero is now. If EAL's rate differs by more than 1 %, or `begin` is less
    /// than 50 ms ago, EAL's is used.
    #[must_use]
    pub fn calibrated(eal: &Eal, begin: &Calibration) -> Self {
        let rounded = Self::new(eal);
        match begin.hz(&Calibration::now()) {
            Some(hz) if hz.abs_diff(rounded.hz) <= rounded.hz / 100 => Self::at(hz, Tsc::now()),
            _ => rounded,
        }
    }

    /// Creates a clock of a given rate (cycles per second, at least 1) whose zero is at `start`.
    #[must_use]
    pub fn at(hz: u64, start: Tsc) -> Self {
        let hz = hz.max(1);
        let mut shift = 63;
        let mult = loop {
            if let Ok(mult) =
                u64::try_from((u128::from(NANOS_PER_SECOND) << shift) / u128::from(hz))
            {
                break mult;
            }
            shift -= 1;
        };
        Self {
            start: start.0,
            hz,
            mult,
            shift,
        }
    }

    /// Returns the rate in cycles per second.
    #[must_use]
    pub fn hz(&self) -> u64 {
        self.hz
    }

    /// Returns the nanoseconds since this clock's zero.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.ns_at(Tsc::now())
    }

    /// Returns the nanoseconds from this clock's zero to `tsc`; zero for anything earlier.
    #[inline]
    #[must_use]
    pub fn ns_at(&self, tsc: Tsc) -> u64 {
        self.ns_of(tsc.0.saturating_sub(self.start))
    }

    /// Converts a duration of `cycles` to nanoseconds, rounded down.
    #[inline]
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the result wraps only after 584 years of nanoseconds"
    )]
    pub fn ns_of(&self, cycles: u64) -> u64 {
        // A widening multiplication, one MUL on a 64-bit machine: no 128-bit division happens here.
        ((u128::from(cycles) * u128::from(self.mult)) >> self.shift) as u64
    }

    /// Converts `ns` nanoseconds to cycles, rounded down; saturating. A division: not for the packet
    /// path.
    #[must_use]
    pub fn cycles_of(&self, ns: u64) -> u64 {
        let cycles = u128::from(ns) * u128::from(self.hz) / u128::from(NANOS_PER_SECOND);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_counter_does_not_run_backwards() {
        let mut last = Tsc::now();
        for _ in 0..10_000 {
            let now = Tsc::now();
            assert!(now >= last);
            last = now;
        }
    }

    /// EAL rounds this counter's 2,445.4 MHz to 2,450, and a shaper then runs faster than its link.
    #[test]
    fn the_rate_is_not_rounded() {
        let begin = Calibration::now();
        let later = Calibration {
            tsc: Tsc(begin.tsc.0 + 244_540_000),
            at: begin.at + Duration::from_millis(100),
        };
        assert_eq!(begin.hz(&later), Some(2_445_400_000));
    }

    /// The rate EAL rounds to 10 MHz is up to 0.2 % off; a tenth of a second measures it to 0.01 %.
    #[test]
    fn the_rate_is_found_to_a_ten_thousandth() {
        let begin = Calibration::now();
        std::thread::sleep(Duration::from_millis(100));
        let middle = Calibration::now();
        std::thread::sleep(Duration::from_millis(100));
        let end = Calibration::now();
        let [first, second] = [begin.hz(&middle), middle.hz(&end)].map(Option::unwrap);
        assert!(first.abs_diff(second) <= first / 10_000, "{first} {second}");
        assert_eq!(begin.hz(&begin), None, "too short");
    }

    #[test]
    fn before_its_zero_a_clock_says_zero() {
        let clock = Clock::at(2_000_000_000, Tsc::from_cycles(1000));
        assert_eq!(clock.ns_at(Tsc::from_cycles(0)), 0);
        assert_eq!(clock.ns_at(Tsc::from_cycles(3000)), 1000);
    }

    proptest! {
        /// Compares with exact arithmetic, over rates from 1 MHz (timers of ARM) to 10 GHz and up to 30
        /// years.
        #[test]
        fn conversion_is_exact_to_a_nanosecond_an_hour(
            hz in 1_000_000_u64..10_000_000_000,
            seconds in 0_u64..1_000_000_000,
            part in 0_u64..1_000_000,
        ) {
            let clock = Clock::at(hz, Tsc::from_cycles(0));
            prop_assume!(seconds.checked_mul(hz).is_some());
            let cycles = seconds * hz + part;
            let exact = u128::from(cycles) * u128::from(NANOS_PER_SECOND) / u128::from(hz);
            let exact = u64::try_from(exact).unwrap();
            let got = clock.ns_of(cycles);
            prop_assert!(got <= exact);
            prop_assert!(exact - got <= 1 + seconds / 3600);
        }

        #[test]
        fn conversion_is_monotone(
            hz in 1_000_000_u64..10_000_000_000, a in 0_u64..1 << 60, more in 0_u64..1000,
        ) {
            let clock = Clock::at(hz, Tsc::from_cycles(0));
            prop_assert!(clock.ns_of(a + more) >= clock.ns_of(a));
        }

        #[test]
        fn cycles_and_back_lose_less_than_a_cycle(
            hz in 1_000_000_000_u64..10_000_000_000, ns in 0_u64..1 << 50,
        ) {
            let clock = Clock::at(hz, Tsc::from_cycles(0));
            let back = clock.ns_of(clock.cycles_of(ns));
            prop_assert!(back <= ns && ns - back <= 2 + ns / NANOS_PER_SECOND / 3600);
        }
    }
}
