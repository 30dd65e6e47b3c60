//! Macro for enums whose variants have stable names: one line declares a variant, counts it and names it in every output.

/// Enum declared with [`named!`](crate::named!).
pub trait Named: Copy {
    /// Names of all variants, in the order of their indices.
    const NAMES: &'static [&'static str];
}

/// Declares an enum whose variants each have a name that operators and JSON see.
///
/// ```
/// npcc_pipeline::named! {
///     /// How a road is surfaced.
///     pub enum Surface {
///         /// Tar and stones.
///         Asphalt = "asphalt",
///         /// Nothing.
///         Dirt = "dirt",
///     }
/// }
/// assert_eq!(Surface::ALL.map(Surface::name), ["asphalt", "dirt"]);
/// assert_eq!(Surface::from_index(Surface::Dirt.index()), Some(Surface::Dirt));
/// assert_eq!(Surface::named("asphalt"), Some(Surface::Asphalt));
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {
            $( $(#[$variant:meta])* $Variant:ident = $text:expr, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $vis enum $Name {
            $( $(#[$variant])* $Variant, )+
        }

        impl $crate::named::Named for $Name {
            const NAMES: &'static [&'static str] = &[$( $text ),+];
        }

        impl $Name {
            /// Number of variants.
            $vis const COUNT: usize = [$( stringify!($Variant) ),+].len();

            /// All variants, in the order of their indices.
            $vis const ALL: [$Name; $Name::COUNT] = [$( $Name::$Variant ),+];

            /// Returns the stable name that operators and JSON see.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self { $( $Name::$Variant => $text, )+ }
            }

            /// Returns the index of this variant in an array with one element per variant.
            #[must_use]
            $vis const fn index(self) -> usize {
                self as usize
            }

            /// Returns the variant at this index; `None` past the last.
            #[must_use]
            $vis fn from_index(index: usize) -> Option<$Name> {
                $Name::ALL.get(index).copied()
            }

            /// Returns this variant's element of an array with one element per variant.
            #[must_use]
            $vis fn pick<T>(self, all: &[T; $Name::COUNT]) -> &T {
                let [first, ..] = all;
                all.get(self.index()).unwrap_or(first)
            }

            /// Returns the variant with this name.
            #[must_use]
            $vis fn named(name: &str) -> Option<$Name> {
                $Name::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::named! {
        /// One of two sides.
        enum Side {
            /// Left side.
            Left = "left",
            /// Right side.
            Right = "right",
        }
    }

    #[test]
    fn indices_follow_the_list_and_names_find_their_variant() {
        for (index, side) in Side::ALL.into_iter().enumerate() {
            assert_eq!(side.index(), index);
            assert_eq!(Side::from_index(index), Some(side));
            assert_eq!(Side::named(side.name()), Some(side));
        }
        assert_eq!(Side::from_index(Side::COUNT), None);
        assert_eq!(Side::Right.pick(&[1, 2]), &2);
        assert_eq!(Side::named("middle"), None);
    }
}
