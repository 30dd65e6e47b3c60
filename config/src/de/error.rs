//! Deserialization error: the fault, as data, and the path to it.

use std::fmt;

use serde::de;

use crate::suggest::nearest;
use crate::tree::Seg;

/// Fault in the configuration's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    UnknownKey {
        key: String,
        known: Vec<&'static str>,
    },
    MissingKey {
        key: &'static str,
    },
    Value {
        message: String,
        hint: String,
    },
}

/// Fault and its place; `way` leads from the innermost node outwards.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) fault: Fault,
    pub(crate) way: Vec<Seg>,
    /// True if the fault is the key at the end of `way`, not its value.
    pub(crate) at_key: bool,
}

impl Error {
    fn of(fault: Fault) -> Self {
        Self {
            fault,
            way: Vec::new(),
            at_key: false,
        }
    }

    pub(crate) fn within(mut self, seg: Seg) -> Self {
        self.way.push(seg);
        self
    }

    pub(crate) fn at_key(mut self, key: &str) -> Self {
        self.at_key = true;
        self.within(Seg::Key(key.to_owned()))
    }

    fn value(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::of(Fault::Value {
            message: message.into(),
            hint: hint.into(),
        })
    }
}

/// Sections that operators may expect and that are not planned for this switch.
const NOT_PLANNED: [&str; 5] = ["vxlan", "evpn", "mpls", "vrf", "mlag"];

/// Features expected of a Linux-controlled switch that this version leaves out, and what to do instead.
const LEFT_OUT: [(&str, &str); 5] = [
    (
        "lacp",
        "remove it: give each link addresses of its own and let routes share them (ECMP)",
    ),
    (
        "vrrp",
        "remove it: give hosts two gateways, or announce their routes by BGP",
    ),
    ("acl", "remove it: filter at the hosts or the leaf switches"),
    ("urpf", URPF),
    ("rpf", URPF),
];
const URPF: &str =
    "remove it: sources are not checked against routes; npcc.source_check is for what NPCC learns";

impl Fault {
    /// Returns the message and the hint.
    pub(crate) fn words(&self) -> (String, String) {
        match self {
            Self::UnknownKey { key, .. } if NOT_PLANNED.contains(&key.as_str()) => (
                format!("`{key}` is not planned for this switch"),
                match key.as_str() {
                    "vrf" | "mlag" => {
                        "remove it: there is one routing table, and each switch is alone"
                    }
                    _ => "remove it: RoCE inside a tunnel is forwarded and counted, not sampled",
                }
                .to_owned(),
            ),
            Self::UnknownKey { key, known } => match left_out(key) {
                Some(hint) => (
                    format!("`{key}` is left out of this version"),
                    hint.to_owned(),
                ),
                None => (format!("unknown key `{key}`"), choice(key, known)),
            },
            Self::MissingKey { key } => (
                format!("`{key}` is missing"),
                format!("add `{key}:`, it has no default"),
            ),
            Self::Value { message, hint } => (message.clone(), hint.clone()),
        }
    }
}

/// Returns the hint for a feature that is left out.
fn left_out(key: &str) -> Option<&'static str> {
    let key = key.strip_suffix('s').unwrap_or(key);
    let found = LEFT_OUT.iter().find(|(name, _)| *name == key);
    found.map(|(_, hint)| *hint)
}

/// Suggests the nearest known word, or lists all of them if none is near.
fn choice(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.words().0)
    }
}

impl std::error::Error for Error {}

/// Translates serde's description of the expected type into message and hint for an operator.
fn wanted(expected: &dyn de::Expected) -> (String, String) {
    let plain = format!("{expected}");
    let hint = format!("{expected:#}");
    let plain = match plain.as_str() {
        "a boolean" => "true or false".to_owned(),
        "a string" | "string or map" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping of keys to values".to_owned(),
        "f64" => "a number".to_owned(),
        "u32" => "a whole number".to_owned(),
        s if s.starts_with("struct ") => "a mapping of keys to values".to_owned(),
        s if s.starts_with("enum ") => "one word".to_owned(),
        s => s.to_owned(),
    };
    let hint = match plain.as_str() {
        "true or false" => "write true or false".to_owned(),
        "text" => "put the value in quotes if it is meant as text".to_owned(),
        "a list" => "write [a, b] or one `- item` per line".to_owned(),
        "a mapping of keys to values" => {
            "write { key: value } or one `key: value` per line".to_owned()
        }
        _ if hint.starts_with("write ") => hint,
        _ => format!("write {plain}"),
    };
    (plain, hint)
}

/// Translates serde's description of the value found.
fn found(unexpected: &de::Unexpected<'_>) -> String {
    match unexpected {
        de::Unexpected::Bool(b) => format!("`{b}`"),
        de::Unexpected::Unsigned(n) => format!("`{n}`"),
        de::Unexpected::Signed(n) => format!("`{n}`"),
        de::Unexpected::Float(n) => format!("`{n}`"),
        de::Unexpected::Str(s) => format!("`{s}`"),
        de::Unexpected::Unit => "nothing".to_owned(),
        de::Unexpected::Seq => "a list".to_owned(),
        de::Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        // The alternate form of the units' errors says what would have been accepted.
        let (plain, alternate) = (format!("{message}"), format!("{message:#}"));
        let hint = if plain == alternate {
            String::new()
        } else {
            alternate
        };
        Self::value(plain, hint)
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let (plain, hint) = wanted(expected);
        Self::value(format!("{} is not {plain}", found(&unexpected)), hint)
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Self::value(format!("{length} values are not {expected}"), String::new())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let all = expected.join(", ");
        let hint = match nearest(variant, expected) {
            Some(near) => format!("did you mean `{near}`? ({all})"),
            None => format!("write one of {all}"),
        };
        Self::value(format!("`{variant}` is not a choice here"), hint)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::of(Fault::UnknownKey {
            key: field.to_owned(),
            known: expected.to_vec(),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of(Fault::MissingKey { key: field })
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::value(format!("`{field}` is given twice"), "keep one of the two")
    }
}
