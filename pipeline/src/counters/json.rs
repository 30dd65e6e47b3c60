//! Counts that JSON has in another form than their cells.

/// A time in ns as us, to the hundredth.
pub(super) mod micros {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::cast_precision_loss,
        reason = "a report rounds to three digits"
    )]
    pub(crate) fn serialize<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((ns / 10) as f64 / 100.0)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are above zero and far below 2^52 ns"
    )]
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        Ok((f64::deserialize(from)? * 1_000.0).round() as u64)
    }
}

/// A mask of priorities as their list.
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
