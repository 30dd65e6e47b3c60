//! Device name as an operator writes it.
//!
//! Two forms, as on DPDK's own command line: a PCI address (`0000:81:00.0`, `81:00.0`) or a virtual
//! device (`net_pcap0,rx_pcap=a.pcap`), both with optional `key=value` arguments after commas.
//! Parsing accesses nothing else: whether the device exists is checked when it is
//! opened.

use std::fmt;
use std::str::FromStr;

/// Device by its name and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// DPDK's name: the full PCI address, or the virtual device with its number.
    name: String,
    /// Driver of a virtual device; `None` for PCI, where the hardware decides.
    driver: Option<String>,
    arguments: Vec<(String, Option<String>)>,
}

/// Error of a device name that DPDK would not understand.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no name before the first comma.
    #[error(
        "it names no device: write a PCI address (0000:81:00.0) or a virtual device \
         (net_pcap0,rx_pcap=FILE)"
    )]
    Empty,
    /// The name is neither a PCI address nor a virtual device.
    #[error(
        "\"{name}\" is neither a PCI address (0000:81:00.0) nor a virtual device, whose name is \
         a driver and a number (net_pcap0, net_af_packet0)"
    )]
    BadName {
        /// The text before the first comma.
        name: String,
    },
    /// The name is longer than DPDK keeps.
    #[error("\"{name}\" is longer than the 63 bytes DPDK keeps of a device's name")]
    NameTooLong {
        /// The text before the first comma.
        name: String,
    },
    /// The name has a character that C or DPDK's parser does not accept.
    #[error("it contains a NUL character or a line break")]
    BadCharacter,
}

/// `RTE_DEV_NAME_MAX_LEN`, including its NUL.
const NAME_MAX: usize = 64;

impl Device {
    /// Returns DPDK's name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true for a virtual device.
    #[must_use]
    pub fn is_vdev(&self) -> bool {
        self.driver.is_some()
    }

    /// Returns the driver of a virtual device, for example `net_pcap`.
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Iterates over the values given for a key, in order.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.arguments
            .iter()
            .filter(move |(k, _)| k == key)
            .filter_map(|(_, value)| value.as_deref())
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        if text.contains(['\0', '\n', '\r']) {
            return Err(DeviceError::BadCharacter);
        }
        let mut parts = text.trim().split(',').map(str::trim);
        let name = parts
            .next()
            .filter(|name| !name.is_empty())
            .ok_or(DeviceError::Empty)?;
        if name.len() >= NAME_MAX {
            return Err(DeviceError::NameTooLong {
                name: name.to_owned(),
            });
        }
        let (name, driver) = match pci_address(name) {
            Some(address) => (address, None),
            None => (name.to_owned(), Some(vdev_driver(name)?)),
        };
        let arguments = parts
            .filter(|part| !part.is_empty())
            .map(|part| match part.split_once('=') {
                Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
                None => (part.to_owned(), None),
            })
            .collect();
        Ok(Self {
            name,
            driver,
            arguments,
        })
    }
}

/// Formats the device as DPDK's own parser takes it.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (key, value) in &self.arguments {
            write!(f, ",{key}")?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
        }
        Ok(())
    }
}

/// Parses `[domain:]bus:device.function` in hexadecimal, completed with domain 0; `None` when it is not one.
fn pci_address(text: &str) -> Option<String> {
    let (front, function) = text.rsplit_once('.')?;
    let fields: Vec<&str> = front.split(':').collect();
    let (domain, bus, device) = match fields.as_slice() {
        [bus, device] => ("0000", *bus, *device),
        [domain, bus, device] => (*domain, *bus, *device),
        _ => return None,
    };
    let hex = |digits: &str, most: usize, below: u32| {
        let fits =
            (1..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16)
            .ok()
            .filter(|&value| fits && value < below)
    };
    Some(format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        hex(domain, 8, u32::MAX)?,
        hex(bus, 2, 256)?,
        hex(device, 2, 32)?,
        hex(function, 1, 8)?
    ))
}

/// Returns the driver of a virtual device, which is named by its driver and a number.
fn vdev_driver(name: &str) -> Result<String, DeviceError> {
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let known = driver.starts_with("net_") || driver.starts_with("eth_");
    if !plain || !known || driver.len() == name.len() {
        return Err(DeviceError::BadName {
            name: name.to_owned(),
        });
    }
    Ok(driver.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_virtual_device_has_a_driver_and_arguments() {
        let device: Device = "net_pcap0,rx_pcap=a.pcap,tx_pcap=b.pcap,rx_pcap=c.pcap"
            .parse()
            .unwrap();
        assert_eq!(
            (device.name(), device.driver()),
            ("net_pcap0", Some("net_pcap"))
        );
        assert_eq!(
            device.values("rx_pcap").collect::<Vec<_>>(),
            ["a.pcap", "c.pcap"]
        );
        assert_eq!(device.values("iface").next(), None);
        assert!(device.is_vdev());
    }

    #[test]
    fn a_pci_address_gets_its_domain() {
        for text in ["81:00.1", "0000:81:00.1", "0:81:0.1"] {
            let device: Device = text.parse().unwrap();
            assert_eq!(
                (device.name(), device.driver()),
                ("0000:81:00.1", None),
                "{text}"
            );
        }
        let device: Device = "81:00.1,mprq_en=1".parse().unwrap();
        assert_eq!(device.to_string(), "0000:81:00.1,mprq_en=1");
    }

    #[test]
    fn what_is_neither_is_refused_with_the_reason() {
        for (text, error) in [
            ("", DeviceError::Empty),
            (",rx_pcap=a", DeviceError::Empty),
            (
                "eth0",
                DeviceError::BadName {
                    name: "eth0".to_owned(),
                },
            ),
            (
                "net_null",
                DeviceError::BadName {
                    name: "net_null".to_owned(),
                },
            ),
            (
                "81:00.9",
                DeviceError::BadName {
                    name: "81:00.9".to_owned(),
                },
            ),
            (
                "81:20.0",
                DeviceError::BadName {
                    name: "81:20.0".to_owned(),
                },
            ),
            ("net_null0\n", DeviceError::BadCharacter),
        ] {
            assert_eq!(text.parse::<Device>(), Err(error), "{text:?}");
        }
        let long = format!("net_null{}", "0".repeat(60));
        assert_eq!(
            long.parse::<Device>(),
            Err(DeviceError::NameTooLong { name: long })
        );
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(
            number in 0_u32..100,
            arguments in proptest::collection::vec(
                ("[a-z_]{1,8}", proptest::option::of("[a-z./0-9]{1,12}")),
                0..4,
            ),
        ) {
            let mut text = format!("net_pcap{number}");
            for (key, value) in &arguments {
                text.push(',');
                text.push_str(key);
                if let Some(value) = value {
                    text.push('=');
                    text.push_str(value);
                }
            }
            let device: Device = text.parse().unwrap();
            prop_assert_eq!(device.to_string(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = text.parse::<Device>();
        }
    }
}
