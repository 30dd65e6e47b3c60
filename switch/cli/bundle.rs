//! An archive of parts, each of which is there or named in its MANIFEST with the reason.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes of a part at most, so that no log makes the archive too large to send.
const LONGEST: usize = 32 << 20;
/// Bytes of a file at most that is no text: a core.
const LONGEST_FILE: u64 = 256 << 20;

/// An archive that is being written, and what is in it.
pub(super) struct Bundle {
    archive: tar::Builder<GzEncoder<File>>,
    folder: String,
    manifest: String,
    time: u64,
}

impl Bundle {
    pub(super) fn new(path: &Path, folder: String) -> anyhow::Result<Bundle> {
        // Addresses and routes are nobody else's business.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Bundle {
            archive: tar::Builder::new(GzEncoder::new(file, Compression::default())),
            folder,
            manifest: String::new(),
            time: time.unwrap_or_default().as_secs(),
        })
    }

    /// Puts a file in as it is, its beginning where it is long, or says why it is not there.
    pub(super) fn add_file(
        &mut self,
        name: &str,
        part: Result<PathBuf, String>,
    ) -> anyhow::Result<()> {
        let read = part.and_then(|path| {
            let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
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
                let _ = writeln!(self.manifest, "{name}: absent: {}", why.trim());
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
        flushed.context("cannot write the archive")
    }
}
