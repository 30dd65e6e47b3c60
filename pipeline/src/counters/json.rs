//! JSON forms of counts that differ from their cells.

/// Serializes a time in ns as us, to the hundredth.
pub(super) mod micros {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::num::{real, whole};

    pub(crate) fn serialize<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(real(ns / 10) / 100.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        Ok(whole((f64::deserialize(from)? * 1_000.0).round()))
    }
}

/// Serializes a mask of priorities as the list of the priorities.
pub(super) mod priorities {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(mask: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0u8..8).filter(|bit| mask >> bit & 1 != 0))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let all = Vec::<u8>::deserialize(from)?;
        let bits = all
            .into_iter()
            .filter_map(|bit| 1u64.checked_shl(bit.into()));
        Ok(bits.fold(0, |mask, bit| mask | bit))
    }
}
