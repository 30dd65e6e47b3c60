//! Setting that is either given or determined automatically.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{I64Deserializer, StrDeserializer, U64Deserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `auto`, or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auto<T> {
    /// Determined automatically.
    #[default]
    Auto,
    /// Configured value.
    Written(T),
}

impl<T: Copy> Auto<T> {
    /// Returns the configured value, if there is one.
    #[must_use]
    pub const fn written(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Written(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Auto<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visit<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Visit<T> {
            type Value = Auto<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("auto, or a value")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Auto<T>, E> {
                if text == "auto" {
                    return Ok(Auto::Auto);
                }
                let text: StrDeserializer<'_, E> = text.into_deserializer();
                T::deserialize(text).map(Auto::Written)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Auto<T>, E> {
                let value: U64Deserializer<E> = value.into_deserializer();
                T::deserialize(value).map(Auto::Written)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Auto<T>, E> {
                let value: I64Deserializer<E> = value.into_deserializer();
                T::deserialize(value).map(Auto::Written)
            }
        }
        d.deserialize_any(Visit(PhantomData))
    }
}

impl<T: Serialize> Serialize for Auto<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => s.serialize_str("auto"),
            Self::Written(value) => value.serialize(s),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Auto<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("AutoOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "auto, or a value",
            "anyOf": [{ "const": "auto" }, generator.subschema_for::<T>()]
        })
    }
}
