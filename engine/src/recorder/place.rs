//! Places of the flight recorder. A running switch writes it as memory, so its file lies in a tmpfs or ramfs: on another file system a store
//! may wait for the disk, or for as long as the file system is frozen, and workers store.
//!
//! Law: a running switch's recorder is beside its management socket if that folder is in memory, else in `/dev/shm`, else in a memfd that
//! the service manager's descriptor store has, else in a memfd alone. A run that ended leaves it beside the socket, and a start leaves that of
//! the run before there as `.recorder.previous`; both are written as ordinary files. All who look for a recorder use [`find`]. `/dev/shm` is
//! open to every user: what another user put there is neither read nor followed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};
use npcc_pipeline::counters::Path as Hash;

use super::read::{self, ReadError, Reading};

/// Folder in memory that every Linux has.
const SHARED: &str = "/dev/shm";
/// Type of a ramfs, by `linux/magic.h`.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// Returns the path of the recorder beside the management socket.
#[must_use]
pub fn beside(socket: &Path) -> PathBuf {
    socket.with_extension("recorder")
}

/// Returns the path of the recorder of the run before.
#[must_use]
pub fn previous(socket: &Path) -> PathBuf {
    socket.with_extension("recorder.previous")
}

/// Returns the path of the recorder in `/dev/shm`, named after the socket's path.
#[must_use]
pub fn shared(socket: &Path) -> PathBuf {
    let folder = folder(socket);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let whole = folder.join(socket.file_name().unwrap_or_default());
    let number = Hash::ROOT.then(&whole.to_string_lossy()).number();
    Path::new(SHARED).join(format!("npcc-switch-{number:016x}.recorder"))
}

/// Returns the folder of a file, the current one for a bare name.
fn folder(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// Returns true if a file of this path lies in memory.
pub(super) fn is_in_memory(path: &Path) -> bool {
    let found = statfs(folder(path));
    found.is_ok_and(|found| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&found.filesystem_type()))
}

/// Finds the recorder of the switch with this management socket: of the files in which it may be, the one whose run began last.
///
/// # Errors
/// There is none: the reason of the file beside the socket.
pub fn find(socket: &Path) -> Result<(PathBuf, Reading), ReadError> {
    let all = [beside(socket), shared(socket)].map(|path| {
        let reading = read(&path)?;
        Ok((path, reading))
    });
    let [first, second] = all;
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(if second.1.begun > first.1.begun {
            second
        } else {
            first
        }),
        (first, Err(_)) => first,
        (Err(_), second) => second,
    }
}

/// Reads a recorder; one in `/dev/shm` only from a regular file of this user or root, no link followed.
///
/// # Errors
/// [`ReadError`].
pub fn read(path: &Path) -> Result<Reading, ReadError> {
    if path.parent() == Some(Path::new(SHARED)) {
        let metadata = fs::symlink_metadata(path).map_err(read::file_error)?;
        let ours = [0, nix::unistd::geteuid().as_raw()].contains(&metadata.uid());
        if metadata.is_symlink() || !ours {
            return Err(ReadError::Foreign);
        }
    }
    read::file(path)
}

/// Writes the octets of a recorder into a new file of this path, in place of an older one.
///
/// # Errors
/// The file cannot be written; the older one is as it was.
pub(super) fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    // A process that was killed may have left one.
    let _ = fs::remove_file(&new);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options
        .open(&new)
        .and_then(|mut file| file.write_all(octets))
        .and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| _ = fs::remove_file(&new))
}
