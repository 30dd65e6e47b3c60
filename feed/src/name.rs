//! Names of boxes and sites.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most letters of a name.
const LONGEST: usize = 32;

/// Name of a box, a site or a host: 1 to 32 of `a-z`, `0-9` and `-`, so that it is one token of a NATS subject.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(extend("pattern" = format!("^[a-z0-9-]{{1,{LONGEST}}}$")))]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Returns the name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reason why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name: write 1 to {LONGEST} of a-z, 0-9 and -")]
pub struct NotAName(String);

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName(text.chars().take(2 * LONGEST).collect()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_token_of_a_subject() {
        for good in ["a", "edge-1", "0", &"x".repeat(32)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "a.b", "a*", ">", "a b", "ä", &"x".repeat(33)] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
            assert!(serde_json::from_value::<Name>(bad.into()).is_err(), "{bad}");
        }
    }
}
