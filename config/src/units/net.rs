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
    let wrong = || UnitError::not(text, what, format!("write {example}"));
    // The reader of the standard library refuses leading zeros, which others read as octal; that of ipnet takes them.
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address = address.parse::<IpAddr>().map_err(|_| wrong())?;
    if length.len() > 1 && length.starts_with(['0', '+']) {
        return Err(wrong());
    }
    let length = length.parse().map_err(|_| wrong())?;
    let net = IpNet::new(address, length).map_err(|_| wrong())?;
    on_a_wire(text, address, Some(length)).map(|()| net)
}

/// Refuses IPv4-mapped addresses, which no packet carries (RFC 4291, section 2.5.5.2), with the IPv4 form as the hint.
fn on_a_wire(text: &str, address: IpAddr, length: Option<u8>) -> Result<(), UnitError> {
    let IpAddr::V6(six) = address else {
        return Ok(());
    };
    let Some(four) = six
        .to_ipv4_mapped()
        .filter(|_| length.is_none_or(|l| l >= 96))
    else {
        return Ok(());
    };
    let hint = match length {
        Some(length) => format!("write {four}/{}", length - 96),
        None => format!("write {four}"),
    };
    Err(UnitError::bad(
        text,
        "is an IPv4 address in IPv6's form",
        hint,
    ))
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
        let address = text.parse().map_err(|_| {
            let accepted = "write one IPv4 or IPv6 address, such as 10.0.12.2 or 2001:db8:12::2";
            UnitError::not(text, "an IP address", accepted)
        })?;
        on_a_wire(text, address, None).map(|()| Self(address))
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
