//! Detector of a worker that falls behind a port's receive ring: by the ring's fill level where the driver reports it,
//! elsewhere by consecutive full bursts.

/// Detector state of one port.
#[derive(Debug)]
pub struct Pressure {
    limit: u16,
    streak: u16,
    high: bool,
    /// True if a burst was received in this iteration of the loop.
    seen: bool,
}

impl Pressure {
    /// Returns a detector that triggers at `limit` consecutive full bursts; never if 0.
    #[must_use]
    pub const fn new(limit: u16) -> Pressure {
        Pressure {
            limit,
            streak: 0,
            high: false,
            seen: false,
        }
    }

    /// Reports a received burst: full, or less than half full (`light`).
    #[inline]
    pub const fn burst(&mut self, full: bool, light: bool) {
        self.seen = true;
        if full {
            self.streak = self.streak.saturating_add(1);
            self.high |= self.limit != 0 && self.streak >= self.limit;
        } else {
            self.streak = 0;
            // Between half and full nothing changes: hysteresis.
            self.high &= !light;
        }
    }

    /// Reports the driver's answer whether the ring is over half full, which overrides any count of bursts.
    #[inline]
    pub const fn reported(&mut self, over_half: bool) {
        self.seen = true;
        self.high = over_half;
    }

    /// Reports that nothing can be received in this iteration: pressure is high.
    pub const fn stall(&mut self) {
        self.seen = true;
        self.high = true;
    }

    /// Resets the detector.
    pub const fn forget(&mut self) {
        *self = Pressure::new(self.limit);
    }

    /// Returns true if the pressure is high; called once an iteration of the loop. An iteration without a burst ends it.
    #[inline]
    pub const fn turn(&mut self) -> bool {
        if !self.seen {
            self.streak = 0;
            self.high = false;
        }
        self.seen = false;
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bursts: &[usize]) -> bool {
        let mut pressure = Pressure::new(4);
        let mut high = false;
        for frames in bursts {
            if *frames > 0 {
                pressure.burst(*frames == 32, *frames < 16);
            }
            high = pressure.turn();
        }
        high
    }

    /// If the driver reports the fill level, the limit is 0 and only its report counts; an iteration without a burst, or a
    /// light one, ends the pressure.
    #[test]
    fn a_driver_that_tells_is_believed() {
        let mut pressure = Pressure::new(0);
        for _ in 0..100 {
            pressure.burst(true, false);
            pressure.reported(false);
            assert!(!pressure.turn());
        }
        pressure.burst(true, false);
        pressure.reported(true);
        assert!(pressure.turn());
        pressure.burst(false, false);
        assert!(pressure.turn(), "hysteresis");
        pressure.burst(false, true);
        assert!(!pressure.turn());
    }

    #[test]
    fn full_bursts_in_a_row_are_pressure_and_a_light_one_ends_it() {
        assert!(!after(&[32, 32, 32]));
        assert!(after(&[32, 32, 32, 32]));
        assert!(!after(&[32, 32, 31, 32, 32]), "not in a row");
        assert!(after(&[32, 32, 32, 32, 20]), "hysteresis");
        assert!(!after(&[32, 32, 32, 32, 8]));
        assert!(!after(&[32, 32, 32, 32, 0]));
    }
}
