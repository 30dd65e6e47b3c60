//! Named network namespaces, as `ip netns` makes them: they outlive their creator.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

/// Folder in which `ip netns` keeps the namespaces.
const DIRECTORY: &str = "/run/netns";
/// Namespace of the calling thread, as a source of bind mounts.
const OWN: &str = "/proc/thread-self/ns/net";

/// Returns the path of a namespace's file.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Moves the calling thread into the namespace of a name, which is created if it does not exist.
///
/// Threads the caller creates afterwards are in it too; to leave it, end the thread.
///
/// # Errors
/// The name is no file name, or this process may not do that (`CAP_SYS_ADMIN`).
pub fn enter(name: &str) -> io::Result<()> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("network namespace {name:?}: the name may hold no '/' and not begin with '.'"),
        ));
    }
    let path = path(name);
    if !path.exists() {
        make(&path)?;
    }
    let file = File::open(&path)?;
    setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| {
        let path = path.display();
        let hint = if error == Errno::EINVAL {
            "; it is no network namespace, remove it"
        } else {
            ""
        };
        io::Error::new(
            io::Error::from(error).kind(),
            format!("entering {path}: {error}{hint}"),
        )
    })
}

/// Removes a named namespace; it disappears when the last process in it has left.
///
/// # Errors
/// It does not exist, or this process lacks the privilege.
pub fn remove(name: &str) -> io::Result<()> {
    let path = path(name);
    umount2(&path, MntFlags::MNT_DETACH)?;
    fs::remove_file(path)
}

/// Creates a namespace, in a thread of its own, as the creating thread is in it afterwards.
fn make(path: &Path) -> io::Result<()> {
    share_directory()?;
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    match file {
        Ok(_) => {}
        // Another process was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    let made = std::thread::scope(|scope| {
        let maker = scope.spawn(|| -> nix::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            mount(
                Some(OWN),
                path,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
        });
        maker.join().unwrap_or(Err(Errno::ECANCELED))
    });
    made.map_err(|error| {
        let _ = fs::remove_file(path);
        let path = path.display();
        io::Error::new(
            io::Error::from(error).kind(),
            format!("making network namespace {path}: {error}; it needs CAP_SYS_ADMIN"),
        )
    })
}

/// Makes mounts under the folder visible in other mount namespaces, as `ip netns` does.
fn share_directory() -> io::Result<()> {
    fs::create_dir_all(DIRECTORY)?;
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, DIRECTORY, None::<&str>, flags, None::<&str>)
    };
    if share() == Err(Errno::EINVAL) {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(
            Some(DIRECTORY),
            DIRECTORY,
            None::<&str>,
            flags,
            None::<&str>,
        )?;
        share()?;
    }
    Ok(())
}
