//! Value whose unit only its user knows.

use npcc_pipeline::textual;

/// Number with or without unit as written, such as `300us` or `5%`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display, derive_more::FromStr)]
pub struct Written(pub String);

const ACCEPTED: &str = "write a number with its unit, such as 300us or 5%";

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
