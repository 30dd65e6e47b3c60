//! Operands of a filter's tests: numbers, addresses and names.

use std::net::IpAddr;

use super::expression::{FilterError, Reader};
use super::words::{Word, shown};
use crate::drop::DropReason;
use crate::route::prefix::Prefix;
use crate::wire::bth::RoceClass;

/// Classes of RoCEv2 packets, by name.
const CLASSES: [(&str, RoceClass); 8] = [
    ("data", RoceClass::Data),
    ("read-request", RoceClass::ReadRequest),
    ("ack", RoceClass::Ack),
    ("atomic", RoceClass::Atomic),
    ("management", RoceClass::Management),
    ("datagram", RoceClass::Datagram),
    ("cnp", RoceClass::Cnp),
    ("unsupported", RoceClass::Unsupported),
];

impl<'a> Reader<'a> {
    /// Returns the operand that must follow `of`.
    pub(super) fn operand(&mut self, of: &str, such: &str) -> Result<&'a str, FilterError> {
        match self.take() {
            Some(word) => Ok(word.text),
            None => Err(self.wrong(format!("`{of}` needs {such}"))),
        }
    }

    pub(super) fn value<T: std::str::FromStr>(
        &mut self,
        of: &str,
        such: &str,
    ) -> Result<T, FilterError> {
        let text = self.operand(of, such)?;
        text.parse()
            .map_err(|_| self.wrong_before(format!("`{}` is not {such}", shown(text))))
    }

    pub(super) fn prefix(&mut self) -> Result<Prefix, FilterError> {
        const SUCH: &str = "a prefix such as 10.0.1.0/24";
        let text = self.operand("net", SUCH)?;
        let (address, len) = text.split_once('/').unwrap_or((text, ""));
        let address: Option<IpAddr> = address.parse().ok();
        let full = address.map(|address| if address.is_ipv4() { 32 } else { 128 });
        let len = if len.is_empty() && !text.contains('/') {
            full
        } else {
            len.parse().ok()
        };
        let prefix = address
            .zip(len)
            .and_then(|(address, len)| Prefix::new(address, len));
        prefix.ok_or_else(|| self.wrong_before(format!("`{}` is not {SUCH}", shown(text))))
    }

    pub(super) fn mac(&mut self) -> Result<[u8; 6], FilterError> {
        const SUCH: &str = "a MAC address such as 02:00:00:00:01:03";
        let text = self.operand("mac", SUCH)?;
        let octets = text.split(':').map(|octet| {
            let plain = octet.len() <= 2 && octet.bytes().all(|one| one.is_ascii_hexdigit());
            plain.then(|| u8::from_str_radix(octet, 16).ok()).flatten()
        });
        let octets: Option<Vec<u8>> = octets.collect();
        let mac = octets.and_then(|octets| <[u8; 6]>::try_from(octets).ok());
        mac.ok_or_else(|| self.wrong_before(format!("`{}` is not {SUCH}", shown(text))))
    }

    pub(super) fn number(&mut self, of: &str, most: u32) -> Result<u32, FilterError> {
        let such = format!("a number from 0 to {most}, or 0x and hexadecimal digits");
        let text = self.operand(of, &such)?;
        let number = read_number(text).filter(|number| *number <= most);
        number.ok_or_else(|| self.wrong_before(format!("`{}` is not {such}", shown(text))))
    }

    pub(super) fn byte(&mut self, of: &str, most: u8) -> Result<u8, FilterError> {
        let number = self.number(of, most.into())?;
        Ok(u8::try_from(number).unwrap_or(most))
    }

    pub(super) fn short(&mut self, of: &str) -> Result<u16, FilterError> {
        let number = self.number(of, u16::MAX.into())?;
        Ok(u16::try_from(number).unwrap_or(u16::MAX))
    }

    /// Parses the id that may follow `vlan`.
    pub(super) fn vlan(&mut self) -> Result<Option<u16>, FilterError> {
        let is_number =
            |word: Word<'_>| word.text.starts_with(|first: char| first.is_ascii_digit());
        if !self.peek().is_some_and(is_number) {
            return Ok(None);
        }
        let id = self.number("vlan", 4095)?;
        Ok(u16::try_from(id).ok())
    }

    pub(super) fn ecn(&mut self) -> Result<u8, FilterError> {
        let named = self.peek().and_then(|word| match word.text {
            "not-ect" => Some(0),
            "ect1" => Some(1),
            "ect0" => Some(2),
            "ce" => Some(3),
            _ => None,
        });
        if let Some(ecn) = named {
            self.next += 1;
            return Ok(ecn);
        }
        self.byte("ecn", 3).map_err(|error| FilterError {
            what: format!("{}, or ce, ect0, ect1 or not-ect", error.what),
            ..error
        })
    }

    pub(super) fn reason(&mut self) -> Result<DropReason, FilterError> {
        let text = self.operand("reason", "the name of a drop reason, such as no_route")?;
        DropReason::named(text).ok_or_else(|| {
            let names: Vec<&str> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
            self.wrong_before(format!(
                "`{}` is no drop reason: {}",
                shown(text),
                names.join(", ")
            ))
        })
    }

    pub(super) fn class(&mut self) -> Result<RoceClass, FilterError> {
        let text = self.operand("class", "the name of a class, such as data")?;
        let found = CLASSES.iter().find(|(name, _)| *name == text);
        found.map(|(_, class)| *class).ok_or_else(|| {
            let names = CLASSES.map(|(name, _)| name).join(", ");
            self.wrong_before(format!("`{}` is no class: {names}", shown(text)))
        })
    }
}

/// Parses a decimal number, or a hexadecimal one behind `0x`.
fn read_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain
        .then(|| u32::from_str_radix(digits, radix).ok())
        .flatten()
}
