//! Files that commands write where an operator says.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

/// Opens a file to be written, and creates it if there is none; `truncate`: what is in it goes.
///
/// No link is followed, as one in a folder that others may write to leads to a file of their choice; below `/dev` the names of standard output
/// and of pipes are links.
///
/// # Errors
/// Names the path, and the link.
pub(super) fn create(path: &Path, truncate: bool) -> anyhow::Result<File> {
    let follow = path.starts_with("/dev");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(truncate)
        .custom_flags(if follow { 0 } else { nix::libc::O_NOFOLLOW })
        .open(path);
    file.with_context(|| {
        let shown = path.display();
        if path.is_symlink() {
            format!("cannot write {shown}, which is a link: name the file itself")
        } else {
            format!("cannot write {shown}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_but_those_of_devices() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("theirs"), "precious").unwrap();
        symlink(path("theirs"), path("link")).unwrap();
        symlink(path("absent"), path("dangling")).unwrap();
        for name in ["link", "dangling"] {
            let refused = create(&path(name), true).unwrap_err().to_string();
            assert!(refused.contains("is a link"), "{refused}");
        }
        assert_eq!(fs::read(path("theirs")).unwrap(), b"precious");
        assert!(!path("absent").exists());
        create(&path("theirs"), false).unwrap();
        assert_eq!(fs::read(path("theirs")).unwrap(), b"precious");
        create(&path("theirs"), true).unwrap();
        assert_eq!(fs::read(path("theirs")).unwrap(), b"");
        create(Path::new("/dev/stderr"), false)
            .and_then(|mut file| Ok(file.write_all(b"")?))
            .unwrap();
    }
}
