//! Reading of files named by the operator: regular files only, and at most [`MOST`] bytes.
//!
//! Law: no call blocks. A FIFO, a socket or a device is refused before it is opened for reading, and one that takes the file's place
//! meanwhile does not block either.

use std::fs::{File, FileType, OpenOptions, metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Maximum file size in bytes (8 MiB), whatever the file is for: a configuration, a list of pairs, a recorder.
pub const MOST: u64 = 8 << 20;

/// Reason why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// File is not a regular file but something else, such as `a FIFO`.
    #[error("it is {0} and no regular file")]
    Irregular(&'static str),
    /// File has more bytes than [`MOST`].
    #[error("it has more than {MOST} bytes")]
    TooLong,
}

/// Opens a regular file for reading.
///
/// # Errors
/// [`ReadError`], never [`ReadError::TooLong`]; at once.
pub fn open(path: &Path) -> Result<File, ReadError> {
    // Opening some devices already has side effects.
    check(metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    // O_NONBLOCK makes no difference for a regular file.
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads all bytes of a regular file of at most [`MOST`].
///
/// # Errors
/// [`ReadError`], at once.
pub fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    read_from(open(path)?)
}

/// Reads a source to its end, at most [`MOST`] bytes.
///
/// # Errors
/// [`ReadError`], never [`ReadError::Irregular`].
pub fn read_from(source: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut all = Vec::new();
    let count = source.take(MOST + 1).read_to_end(&mut all)?;
    if count as u64 > MOST {
        return Err(ReadError::TooLong);
    }
    Ok(all)
}

fn check(kind: FileType) -> Result<(), ReadError> {
    if kind.is_file() {
        return Ok(());
    }
    Err(ReadError::Irregular(if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Returns the error of reading a file; the test fails if reading takes over 20 s.
    fn soon(path: &Path) -> String {
        let (said, hears) = channel();
        let path = path.to_owned();
        std::thread::spawn(move || said.send(read(&path).unwrap_err().to_string()));
        hears
            .recv_timeout(Duration::from_secs(20))
            .expect("it is refused at once")
    }

    #[test]
    fn a_fifo_a_device_a_socket_and_a_folder_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        for (path, kind) in [
            (fifo.as_path(), "a FIFO"),
            (link.as_path(), "a FIFO"),
            (Path::new("/dev/zero"), "a device"),
            (socket.as_path(), "a socket"),
            (folder.path(), "a folder"),
        ] {
            assert_eq!(soon(path), format!("it is {kind} and no regular file"));
        }
    }

    #[test]
    fn a_file_of_the_most_bytes_is_read_and_one_of_one_more_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(MOST).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, MOST);
        file.set_len(MOST + 1).unwrap();
        assert!(matches!(read(&path), Err(ReadError::TooLong)));
        // It says that it has no bytes, and has some.
        assert!(!read(Path::new("/proc/self/status")).unwrap().is_empty());
        assert!(matches!(
            read_from(io::repeat(b'x')),
            Err(ReadError::TooLong)
        ));
    }
}
