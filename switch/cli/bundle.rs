//! An archive of parts, each of which is there or named in its MANIFEST with the reason.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use npcc_config::{printable, regular};

/// Bytes of a part at most, so that no log makes the archive too large to send.
const LONGEST: usize = 32 << 20;
/// Bytes of a file at most that is no text: a core.
const LONGEST_FILE: u64 = 256 << 20;

/// Characters of a reason at most.
const LONGEST_REASON: usize = 1_000;

/// An archive that is being written, and what is in it.
pub(super) struct Bundle {
    archive: tar::Builder<GzEncoder<File>>,
    folder: String,
    manifest: String,
    time: u64,
    part: Part,
}

/// File that is removed unless it becomes whole: on a full disk nothing is left of it.
struct Part(Option<PathBuf>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Bundle {
    /// Begins an archive in a new file: its name can be guessed, and who planted a file or a link there would have another's written over.
    pub(super) fn new(path: &Path, folder: String) -> anyhow::Result<Bundle> {
        // Addresses and routes are nobody else's business.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => anyhow!(
                "{} is there already: remove it, or name another file with -o",
                path.display()
            ),
            _ => anyhow!("cannot write {}: {error}", path.display()),
        })?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Bundle {
            archive: tar::Builder::new(GzEncoder::new(file, Compression::default())),
            folder,
            manifest: String::new(),
            time: time.unwrap_or_default().as_secs(),
            part: Part(Some(path.to_owned())),
        })
    }

    /// Puts a file in as it is, its beginning where it is long, or says why it is not there.
    pub(super) fn add_file(
        &mut self,
        name: &str,
        part: Result<PathBuf, String>,
    ) -> anyhow::Result<()> {
        let read = part.and_then(|path| {
            let file =
                regular::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let size = file.metadata().map_or(0, |metadata| metadata.len());
            Ok((path, file, size))
        });
        let (path, file, size) = match read {
            Ok(read) => read,
            Err(why) => return self.add(name, Err(why)),
        };
        let room = size.min(LONGEST_FILE);
        let cut = if room < size { ", cut off" } else { "" };
        let _ = writeln!(
            self.manifest,
            "{name}: {} bytes of {}{cut}",
            room,
            path.display()
        );
        self.put(name, file.take(room), room)
    }

    /// Puts a part in, or says in the manifest why it is not there.
    pub(super) fn add(&mut self, name: &str, part: Result<String, String>) -> anyhow::Result<()> {
        match part {
            Ok(text) => {
                let end = text.floor_char_boundary(LONGEST);
                let cut = if end < text.len() { ", cut off" } else { "" };
                let _ = writeln!(self.manifest, "{name}: {} bytes{cut}", text.len());
                self.put(
                    name,
                    text.get(..end).unwrap_or_default().as_bytes(),
                    end as u64,
                )
            }
            Err(why) => {
                let why = printable(why.trim(), LONGEST_REASON);
                let _ = writeln!(self.manifest, "{name}: absent: {why}");
                Ok(())
            }
        }
    }

    fn put(&mut self, name: &str, data: impl Read, size: u64) -> anyhow::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(self.time);
        let path = format!("{}/{name}", self.folder);
        let put = self.archive.append_data(&mut header, path, data);
        put.context("cannot write the archive")
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let manifest = std::mem::take(&mut self.manifest);
        self.put("MANIFEST", manifest.as_bytes(), manifest.len() as u64)?;
        let file = self.archive.into_inner().and_then(GzEncoder::finish);
        let flushed = file.and_then(|mut file| file.flush());
        flushed.context("cannot write the archive")?;
        self.part.0 = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A link of the archive's name, planted where it was to be written, had the file behind it written over.
    #[test]
    fn an_archive_is_written_to_a_new_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("theirs"), "precious").unwrap();
        symlink(path("theirs"), path("link")).unwrap();
        symlink(path("absent"), path("dangling")).unwrap();
        for name in ["theirs", "link", "dangling"] {
            let refused = Bundle::new(&path(name), "x".to_owned()).err().unwrap();
            assert!(refused.to_string().contains("there already"), "{refused}");
        }
        assert_eq!(fs::read(path("theirs")).unwrap(), b"precious");
        assert!(!path("absent").exists());
        let bundle = |name: &str| Bundle::new(&path(name), "x".to_owned()).unwrap();
        drop(bundle("part"));
        assert!(!path("part").exists(), "it is not whole");
        bundle("new").finish().unwrap();
        assert_eq!(
            fs::metadata(path("new")).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
