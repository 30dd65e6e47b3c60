//! Checks of relations between values, one topic in each file.
//!
//! Law: a check reports only values that stand in the text: those that the operator wrote, and with `set` all others too, as the running
//! configuration is written out first. Where a value was already refused for
//! its form and replaced, all checks that depend on it stay silent.

mod addresses;
mod buffer;
mod cores;
mod depths;
mod general;
mod ineffective;
mod linux;
mod lossless;
mod moved;
mod neighbors;
mod npcc;
mod ports;
mod qos;
mod routes;
mod thresholds;

use std::cmp::Ordering;
use std::fmt::Display;

use crate::diag::Problem;
use crate::model::ConfigFile;
use crate::subnets::Subnets;
use crate::suggest::nearest;
use crate::tree::{Node, Path};
use crate::units::{BitRate, Threshold};

/// Runs every check.
pub(crate) fn run(
    file: &ConfigFile,
    root: &Node,
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) {
    let subnets = Subnets::new(file);
    let mut check = Check {
        file,
        root,
        subnets,
        errors,
        warnings,
    };
    general::check(&mut check);
    cores::check(&mut check);
    cores::eal_args(&mut check);
    ports::check(&mut check);
    addresses::check(&mut check);
    routes::check(&mut check);
    neighbors::check(&mut check);
    qos::check(&mut check);
    npcc::check(&mut check);
    moved::check(&mut check);
    thresholds::check(&mut check);
    ineffective::check(&mut check);
    buffer::check(&mut check);
    lossless::check(&mut check);
    depths::check(&mut check);
    linux::check(&mut check);
}

/// State of the checks: the model, the places of its values, and the findings.
struct Check<'a> {
    file: &'a ConfigFile,
    root: &'a Node,
    subnets: Subnets,
    errors: &'a mut Vec<Problem>,
    warnings: &'a mut Vec<Problem>,
}

impl Check<'_> {
    /// Reports an error in the value at `path`.
    fn error(&mut self, path: &Path, message: impl Into<String>, hint: impl Into<String>) {
        if self.certain(path) {
            self.errors
                .push(Problem::new(self.root.place(path), message, hint));
        }
    }

    /// Reports an error in the key at the end of `path`, whatever its value.
    fn error_at_key(&mut self, path: &Path, message: impl Into<String>, hint: impl Into<String>) {
        if self.certain(path) {
            self.errors
                .push(Problem::new(self.root.place_of_key(path), message, hint));
        }
    }

    /// Reports a value at `path` that has no or limited effect.
    fn warn(&mut self, path: &Path, message: impl Into<String>, hint: impl Into<String>) {
        if self.certain(path) {
            self.warnings
                .push(Problem::new(self.root.place(path), message, hint));
        }
    }

    /// Refuses duplicate entries in the list at `path`; `what` names an entry in the message.
    fn once<T: PartialEq + Display>(&mut self, path: &Path, all: &[T], what: &str, hint: &str) {
        for (i, one) in all.iter().enumerate() {
            if all[..i].contains(one) {
                self.error(
                    &path.index(i),
                    format!("{what} {one} is listed twice"),
                    hint,
                );
            }
        }
    }

    /// Returns true if the value at `path` is the operator's (or the default because the key is absent).
    fn certain(&self, path: &Path) -> bool {
        self.root.is_certain(path)
    }

    /// Returns true if the value at `path` is written, and not as null.
    fn written(&self, path: &Path) -> bool {
        self.root.get(path).is_some_and(|node| !node.is_null())
    }

    /// Returns the line of the value at `path`.
    fn line(&self, path: &Path) -> usize {
        self.root.place(path).line
    }

    /// Returns true if the names of all ports are known.
    fn names_certain(&self) -> bool {
        let ports = port_path;
        self.certain(&Path::root("ports"))
            && (0..self.file.ports.len()).all(|i| self.certain(&ports(i).key("name")))
    }

    /// Returns true if the addresses of all ports and neighbours are known.
    fn addresses_certain(&self) -> bool {
        let neighbor = |n| Path::root("neighbors").index(n);
        self.certain(&Path::root("ports"))
            && self.certain(&Path::root("neighbors"))
            && self.file.ports.iter().enumerate().all(|(i, port)| {
                let port_at = port_path(i);
                let vlan = |v| port_at.key("vlans").index(v);
                self.certain(&port_at.key("addresses"))
                    && self.certain(&port_at.key("vlans"))
                    && (0..port.vlans.len()).all(|v| self.certain(&vlan(v).key("addresses")))
            })
            && (0..self.file.neighbors.len()).all(|n| {
                self.certain(&neighbor(n).key("address")) && self.certain(&neighbor(n).key("port"))
            })
    }

    /// Returns the index of the port named at `path`; reports an error if there is none.
    fn port_named(&mut self, path: &Path, name: &str) -> Option<usize> {
        let found = self.file.ports.iter().position(|p| p.name == name);
        if found.is_none() && self.names_certain() {
            let names: Vec<&str> = self.file.ports.iter().map(|p| p.name.as_str()).collect();
            let hint = match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("ports are {}", names.join(", ")),
            };
            self.error(path, format!("there is no port `{name}`"), hint);
        }
        found
    }

    /// Returns the name of a port, for messages.
    fn port_name(&self, port: usize) -> String {
        self.file
            .ports
            .get(port)
            .map_or_else(String::new, |p| p.name.clone())
    }
}

/// Returns the path of a port.
fn port_path(port: usize) -> Path {
    Path::root("ports").index(port)
}

/// Compares two depths; `None` when one is a size and the other a time of a rate that is not known here.
fn compare(a: Threshold, b: Threshold, drain: Option<(BitRate, u16)>) -> Option<Ordering> {
    match (a, b, drain) {
        (Threshold::Bytes(a), Threshold::Bytes(b), _) => Some(a.cmp(&b)),
        (Threshold::Time(a), Threshold::Time(b), _) => Some(a.cmp(&b)),
        (a, b, Some((rate, mtu))) => {
            Some(a.bytes_floored(rate, mtu).cmp(&b.bytes_floored(rate, mtu)))
        }
        _ => None,
    }
}
