//! IP addresses and prefixes as written; the checks decide if they make sense.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::UnitError;
use npcc_pipeline::textual;

/// An address of the switch with its subnet's length, such as `10.0.1.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct Interface(pub IpNet);

/// A destination prefix, such as `10.0.2.0/24`; host bits are kept as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct Prefix(pub IpNet);

/// One IP address, such as `10.0.12.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct Address(pub IpAddr);

fn parse(text: &str, what: &str, example: &str) -> Result<IpNet, UnitError> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let full = if address.is_ipv4() { 32 } else { 128 };
        return Err(UnitError::bad(
            text,
            "has no prefix length",
            format!("write {example}, or {address}/{full} for this one address"),
        ));
    }
    text.parse()
        .map_err(|_| UnitError::not(text, what, format!("write {example}")))
}

impl FromStr for Interface {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "an address and its prefix length, such as 10.0.1.1/24 or 2001:db8:1::1/64";
        parse(text, "an interface address", example).map(Self)
    }
}

impl FromStr for Prefix {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "a prefix and its length, such as 10.0.2.0/24 or 2001:db8:2::/48";
        parse(text, "a prefix", example).map(Self)
    }
}

impl FromStr for Address {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.parse().map(Self).map_err(|_| {
            let accepted = "write one IPv4 or IPv6 address, such as 10.0.12.2 or 2001:db8:12::2";
            UnitError::not(text, "an IP address", accepted)
        })
    }
}

textual!(Interface as "Interface", "an interface address", "write an address and its prefix length, such as 10.0.1.1/24",
    schema: |_generator| {
        "description": "write an address and its prefix length, such as 10.0.1.1/24", "type": "string",
        "examples": ["10.0.1.1/24", "2001:db8:1::1/64"]
    }
);
textual!(Prefix as "Prefix", "a prefix", "write a prefix and its length, such as 10.0.2.0/24",
    schema: |_generator| {
        "description": "write a prefix and its length, such as 10.0.2.0/24", "type": "string",
        "examples": ["10.0.2.0/24", "2001:db8:2::/48"]
    }
);
textual!(Address as "Address", "an IP address", "write one IPv4 or IPv6 address, such as 10.0.12.2",
    schema: |_generator| {
        "description": "write one IPv4 or IPv6 address, such as 10.0.12.2", "type": "string",
        "examples": ["10.0.12.2", "2001:db8:12::2"]
    }
);
