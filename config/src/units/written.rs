//! A value whose unit is known only to whom it is for.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use npcc_pipeline::textual;

/// A number with or without unit as it is written, such as `300us` or `5%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(pub String);

const ACCEPTED: &str = "write a number with its unit, such as 300us or 5%";

impl FromStr for Written {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

textual!(
    Written as "Written", "a value", ACCEPTED,
    numbers: {
        visit_u64(n: u64) => Ok(Written(n.to_string())),
        visit_i64(n: i64) => Ok(Written(n.to_string())),
        visit_f64(n: f64) => Ok(Written(n.to_string())),
    },
    schema: |_generator| {
        "description": ACCEPTED,
        "anyOf": [{ "type": "string" }, { "type": "number", "minimum": 0 }],
        "examples": ["300us", "5%"]
    }
);
