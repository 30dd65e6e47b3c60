//! Where all that is known of a host comes from: files under a root, and what a few commands of the system answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A host, or a tree of files that looks like one.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    /// What commands answer, for a tree; this host's own are run.
    answers: Option<BTreeMap<String, String>>,
}

impl Host {
    /// This host.
    #[must_use]
    pub fn this() -> Host {
        Host {
            root: PathBuf::from("/"),
            answers: None,
        }
    }

    /// The tree under `root`; a command answers with what stands in the file `commands/COMMAND WORD WORD`, a `/` in it written `%`.
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

    /// A path of the host as this process reaches it.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text without white space at its ends.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file's number.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Whether there is something.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// Names in a folder, in order; none where there is no such folder.
    pub(crate) fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let names = entries.flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The last part of what a link leads to, as sysfs names a driver.
    pub(crate) fn target(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// What a command prints, if it is there and succeeds.
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
