//! Access to a host: files under a root, and the output of a few system commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder in which the kernel shows its PCI devices.
pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";

/// Host to examine, or a tree of files that looks like one.
#[derive(Debug, PartialEq, Eq)]
pub struct Host {
    root: PathBuf,
    /// Output of commands, for a tree; `None` runs the commands on this host.
    answers: Option<BTreeMap<String, String>>,
}

impl Host {
    /// Returns this host.
    #[must_use]
    pub fn this() -> Host {
        Host {
            root: PathBuf::from("/"),
            answers: None,
        }
    }

    /// Returns the tree under `root`; a command's output is the file `commands/COMMAND WORD WORD`, a `/` in it written `%`.
    #[must_use]
    pub fn tree(root: &Path) -> Host {
        let files = fs::read_dir(root.join("commands")).into_iter().flatten();
        let answer = |file: fs::DirEntry| {
            let name = file.file_name().to_string_lossy().replace('%', "/");
            Some((name, fs::read_to_string(file.path()).ok()?))
        };
        Host {
            root: root.to_owned(),
            answers: Some(files.flatten().filter_map(answer).collect()),
        }
    }

    /// Returns a path of the host as this process reaches it.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads a file's text without white space at its ends.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Reads a file that holds a number.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Reads the vendor and device numbers of a PCI device.
    #[must_use]
    pub fn card(&self, address: &str) -> Option<(u16, u16)> {
        let number = |file: &str| {
            let text = self.read(format!("{DEVICES}/{address}/{file}"))?;
            u16::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        };
        Some((number("vendor")?, number("device")?))
    }

    /// Returns true if something exists at the path.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// Lists the names in a folder, in order; empty if there is no such folder.
    pub(crate) fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let names = entries.flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the last component of a link's target, as sysfs names a driver.
    pub(crate) fn target(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Runs a command and returns its output, if it exists and succeeds.
    pub(crate) fn ask(&self, words: &[&str]) -> Option<String> {
        if let Some(answers) = &self.answers {
            return answers.get(&words.join(" ")).cloned();
        }
        let (program, rest) = words.split_first()?;
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::null()).env("LC_ALL", "C");
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }
}
