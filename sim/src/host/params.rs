//! Named parameter sets of senders.

use npcc_pipeline::units::Nanos;
use serde::Deserialize;

use super::paper::{Paper, PaperParams};
use super::swift::Swift;
use super::vendor::{Vendor, VendorParams};
use super::{Gbps, RateControl};

/// `rpg_byte_reset` of a ConnectX at its defaults, as `mlxconfig` prints it.
const BYTE_RESET: u64 = 32_767;
/// Bytes per unit of `rpg_byte_reset`, by inference (docs/evidence.md): 2,097,088 bytes are 335 us at 50 Gb/s, 32,767 would be 5.
const BYTE_RESET_UNIT: u64 = 64;

/// A sender model with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// The vendor variant of the HPCC simulator: alpha 1 us, decrease 4 us, increase 300 us, no byte counter.
    HpccVendor,
    /// [`HpccVendor`](Sender::HpccVendor), with alpha starting anew at the first CNP after the rate was back at the line.
    HpccReset,
    /// DCQCN's reaction point as published (SIGCOMM'15).
    Paper,
    /// [`Paper`](Sender::Paper), with increases as in its authors' simulator.
    PaperCode,
    /// ConnectX defaults with the byte counter of 2,097,088 bytes: `rpg_byte_reset` in units of 64.
    Mlx,
    /// [`Mlx`](Sender::Mlx), with alpha starting anew at the first CNP after the rate was back at the line.
    MlxReset,
    /// `mlx-reset` with a byte counter of 32,767 bytes, the reading of `rpg_byte_reset` that no known card has.
    MlxBytes,
    /// DCQCN+: the CNP carries the receiver's period; timers and steps follow.
    #[serde(rename = "dcqcn+")]
    DcqcnPlus,
    /// Swift: follows a delay target (SIGCOMM'20), for comparison: a card that uses round-trip times and ignores CNPs.
    Swift,
    /// No rate control: always at line rate, ignores CNPs.
    Uncontrolled,
}

impl Sender {
    /// Returns the name used in scenarios and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Sender::HpccVendor => "hpcc-vendor",
            Sender::HpccReset => "hpcc-reset",
            Sender::Paper => "paper",
            Sender::PaperCode => "paper-code",
            Sender::Mlx => "mlx",
            Sender::MlxReset => "mlx-reset",
            Sender::MlxBytes => "mlx-bytes",
            Sender::DcqcnPlus => "dcqcn+",
            Sender::Swift => "swift",
            Sender::Uncontrolled => "uncontrolled",
        }
    }

    /// Returns the minimum time between two CNPs of a receiver for one flow, for this kind of card.
    #[must_use]
    pub const fn cnp_interval(self) -> Nanos {
        match self {
            Sender::Paper | Sender::PaperCode | Sender::DcqcnPlus => Nanos::from_micros(50),
            _ => Nanos::from_micros(4),
        }
    }

    /// Creates the rate control of a queue pair, starting at line rate.
    #[must_use]
    pub fn start(self, line: Gbps) -> Box<dyn RateControl> {
        // The HPCC set is given for 100G and scales with the link there (its `run.py`); the others are absolute.
        let scaled = line / 100.0;
        match self {
            Sender::HpccVendor | Sender::HpccReset => Box::new(Vendor::new(VendorParams {
                alpha_keep: 1.0 - 1.0 / 256.0,
                alpha_add: 1.0 / 256.0,
                alpha_first: 1.0,
                alpha_interval: Nanos::from_micros(1),
                decrease_interval: Nanos::from_micros(4),
                increase_interval: Nanos::from_micros(300),
                byte_counter: None,
                fast_recovery: 1,
                additive: 0.020 * scaled,
                hyper: 0.200 * scaled,
                reset: self == Sender::HpccReset,
                min: 0.1,
                line,
            })),
            Sender::Mlx | Sender::MlxReset | Sender::MlxBytes => {
                Box::new(Vendor::new(VendorParams {
                    alpha_keep: 1_019.0 / 1_024.0,
                    alpha_add: 5.0 / 1_024.0,
                    alpha_first: 1_023.0 / 1_024.0,
                    alpha_interval: Nanos::from_micros(1),
                    decrease_interval: Nanos::from_micros(4),
                    increase_interval: Nanos::from_micros(300),
                    byte_counter: Some(if self == Sender::MlxBytes {
                        BYTE_RESET
                    } else {
                        BYTE_RESET * BYTE_RESET_UNIT
                    }),
                    fast_recovery: 1,
                    additive: 0.005,
                    hyper: 0.050,
                    reset: self != Sender::Mlx,
                    min: 0.001,
                    line,
                }))
            }
            Sender::Paper => Box::new(Paper::new(PaperParams::published(line))),
            Sender::PaperCode => Box::new(Paper::new(PaperParams {
                authors: true,
                ..PaperParams::published(line)
            })),
            Sender::DcqcnPlus => Box::new(Paper::new(PaperParams {
                adaptive: true,
                ..PaperParams::published(line)
            })),
            Sender::Swift => Box::new(Swift::new(line)),
            Sender::Uncontrolled => Box::new(Uncontrolled(line)),
        }
    }
}

/// Rate control that always stays at line rate.
#[derive(Debug, Clone, Copy)]
struct Uncontrolled(Gbps);

impl RateControl for Uncontrolled {
    fn rate(&mut self, _: Nanos) -> Gbps {
        self.0
    }

    fn sent(&mut self, _: u64, _: Nanos) {}

    fn cnp(&mut self, _: Option<Nanos>, _: Nanos) {}

    fn rtt(&mut self, _: Nanos, _: Nanos) {}
}
