//! Calendar: the switch's clock and the time since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use npcc_pipeline::num::{real, whole};
use npcc_pipeline::units::Nanos;

use npcc_engine::clock::Clock;

/// Conversion between the switch's clock and the time since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calendar {
    /// Real ns per ns of the switch's clock.
    pub scale: f64,
    /// Time of the switch's clock at this moment.
    pub now: Nanos,
    /// The same time in microseconds since 1970.
    pub epoch_us: u64,
}

impl Calendar {
    /// Makes the conversion of this moment.
    #[must_use]
    pub fn of(clock: Clock) -> Calendar {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Calendar {
            scale: clock.scale(),
            now: clock.now(),
            epoch_us: u64::try_from(micros).unwrap_or(u64::MAX),
        }
    }

    /// Returns a time of the switch's clock in microseconds since 1970.
    #[must_use]
    pub fn micros(&self, at: Nanos) -> u64 {
        let ago = real(self.now.since(at).0) * self.scale / 1e3;
        self.epoch_us.saturating_sub(whole(ago))
    }

    /// Returns the time that is left until a time in microseconds since 1970, in ns of the switch's clock; `None` if that is over.
    pub(super) fn left(&self, until: u64) -> Option<Nanos> {
        let left = until.checked_sub(self.epoch_us).filter(|left| *left > 0)?;
        Some(Nanos(whole(real(left) * 1e3 / self.scale)))
    }
}
