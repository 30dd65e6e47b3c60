//! Rows of the report that read as the counts in them.

/// A row of the report may be read as the counts in it, which are declared with the counters themselves.
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
pub(super) use counted;
