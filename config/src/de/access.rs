//! Deserializer over the tree: serde's view of it.

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_yaml::Value;

use super::error::Error;
use crate::tree::{Entry, Node, NodeKind, Scalar, Seg};

/// Deserializer of a node.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a Node);

fn visit<'de, V: Visitor<'de>>(scalar: &Scalar, visitor: V) -> Result<V::Value, Error> {
    match &scalar.value {
        Value::Null => visitor.visit_unit(),
        Value::Bool(b) => visitor.visit_bool(*b),
        Value::Number(n) => match (n.as_u64(), n.as_i64(), n.as_f64()) {
            (Some(n), _, _) => visitor.visit_u64(n),
            (_, Some(n), _) => visitor.visit_i64(n),
            (_, _, Some(n)) => visitor.visit_f64(n),
            _ => visitor.visit_str(&scalar.text),
        },
        _ => visitor.visit_str(&scalar.text),
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.kind {
            NodeKind::Scalar(scalar) => visit(scalar, visitor),
            NodeKind::Seq { items, .. } => visitor.visit_seq(Items { items, next: 0 }),
            NodeKind::Map { entries, .. } => visitor.visit_map(Entries { entries, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            return visitor.visit_seq(Items {
                items: &[],
                next: 0,
            });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            return visitor.visit_map(Entries {
                entries: &[],
                next: 0,
            });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.0.kind {
            // serde would read a list as the struct's fields in order; no operator means that.
            NodeKind::Seq { .. } => Err(de::Error::invalid_type(de::Unexpected::Seq, &visitor)),
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.0.kind {
            NodeKind::Scalar(scalar) => {
                let word: StrDeserializer<'_, Error> = scalar.text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            NodeKind::Seq { .. } => Err(de::Error::invalid_type(de::Unexpected::Seq, &"one word")),
            NodeKind::Map { .. } => Err(de::Error::invalid_type(de::Unexpected::Map, &"one word")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<'a> {
    items: &'a [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(node) = self.items.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader(node))
            .map(Some)
            .map_err(|e| e.within(Seg::Index(index)))
    }
}

struct Entries<'a> {
    entries: &'a [Entry],
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(entry) = self.entries.get(self.next) else {
            return Ok(None);
        };
        seed.deserialize(Key(&entry.key))
            .map(Some)
            .map_err(|e| e.at_key(&entry.key.text))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some(entry) = self.entries.get(self.next) else {
            return Err(de::Error::custom("a key has no value"));
        };
        self.next += 1;
        let way = || Seg::Key(entry.key.text.clone());
        seed.deserialize(Reader(&entry.value))
            .map_err(|e| e.within(way()))
    }
}

/// Deserializer of a key: a number where the model expects one, otherwise its text.
struct Key<'a>(&'a Scalar);

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visit(self.0, visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.0.text)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf option unit unit_struct newtype_struct seq tuple tuple_struct
        map struct enum ignored_any
    }
}
