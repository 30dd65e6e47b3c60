//! Deref of report rows to the counts in them.

/// Implements `Deref` of each row to its `counts` field, whose type is declared with the counters themselves.
macro_rules! counted {
    ($($Row:ident: $Counts:ty),* $(,)?) => {$(
        impl std::ops::Deref for $Row {
            type Target = $Counts;

            fn deref(&self) -> &$Counts {
                &self.counts
            }
        }

        impl std::ops::DerefMut for $Row {
            fn deref_mut(&mut self) -> &mut $Counts {
                &mut self.counts
            }
        }
    )*};
}
pub(crate) use counted;
