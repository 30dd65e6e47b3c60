//! Settings that are either a word, such as `auto`, or a value.

/// Implements reading and printing of `$name`: the word `$word` is `$Word`, anything that `$of` reads is `$Value`.
macro_rules! word_or {
    (
        $name:ident as $schema:literal, $what:literal, $accepted:expr,
        $word:literal => $Word:ident, $Value:ident($of:ty)
        $(, number: $number:ident => $make:expr)?;
        schema: |$generator:ident| $json:tt
    ) => {
        impl std::str::FromStr for $name {
            type Err = $crate::units::UnitError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if text == $word {
                    return Ok(Self::$Word);
                }
                let value = text.parse::<$of>().map(Self::$Value);
                value.map_err(|_| $crate::units::UnitError::not(text, $what, $accepted))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    Self::$Word => f.write_str($word),
                    Self::$Value(value) => value.fmt(f),
                }
            }
        }

        npcc_pipeline::textual!(
            $name as $schema, $what, $accepted,
            $( numbers: { visit_u64($number: u64) => Ok($make), }, )?
            schema: |$generator| $json
        );
    };
}

pub(crate) use word_or;
