//! Conversions between the models' real numbers and the engine's integers.

pub(crate) use npcc_pipeline::num::whole;

/// Converts to an index or a small count; saturates.
pub(crate) fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
