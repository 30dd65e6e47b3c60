//! Scalars: the text as written and the value that YAML resolves it to.

use serde_yaml::Value;

/// YAML scalar.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    /// Text without quotes.
    pub(crate) text: String,
    /// Null, a boolean, a number or a string, as `serde_yaml` resolves it.
    pub(crate) value: Value,
}

impl Scalar {
    /// Returns a quoted or block scalar: always a string.
    pub(crate) fn quoted(text: String) -> Self {
        Self {
            value: Value::String(text.clone()),
            text,
        }
    }

    /// Returns a plain scalar, resolved by `serde_yaml`, so that both readings of a file agree.
    pub(crate) fn plain(text: String) -> Self {
        // Only texts that begin like one of these resolve to anything but a string.
        let special =
            text.is_empty() || text.starts_with(|c: char| "0123456789+-.~tTfFnN".contains(c));
        if !special {
            return Self::quoted(text);
        }
        match serde_yaml::from_str::<Value>(&text) {
            Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => Self { text, value },
            _ => Self::quoted(text),
        }
    }

    /// Returns true if this scalar, as a key, is `key`: by its text or by its number.
    pub(crate) fn is(&self, key: &str) -> bool {
        self.text == key
            || matches!(&self.value, Value::Number(n) if n.as_u64().is_some_and(|n| n.to_string() == key))
    }

    /// Returns the identity of a key: two keys of one mapping may not share it.
    pub(crate) fn identity(&self) -> String {
        match &self.value {
            Value::Number(n) => n.to_string(),
            _ => self.text.clone(),
        }
    }
}
