//! Network namespaces with a name, as `ip netns` makes them: they outlive whoever made them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

/// Where `ip netns` keeps them.
const DIRECTORY: &str = "/run/netns";
/// What a thread's own namespace is bound from.
const OWN: &str = "/proc/thread-self/ns/net";

/// The file of a namespace.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Puts the calling thread into the namespace of a name, which is made if there is none.
///
/// Threads the caller makes afterwards are in it too; to leave it, end the thread.
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

/// Takes a named namespace away; it goes when the last who is in it has left.
///
/// # Errors
/// There is none, or this process may not do that.
pub fn remove(name: &str) -> io::Result<()> {
    let path = path(name);
    umount2(&path, MntFlags::MNT_DETACH)?;
    fs::remove_file(path)
}

/// Makes a namespace, in a thread of its own as the maker is in it afterwards.
fn make(path: &Path) -> io::Result<()> {
    share_directory()?;
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    match file {
        Ok(_) => {}
        // Another was quicker.
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

/// Lets mounts under the directory be seen in other mount namespaces, as `ip netns` does.
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
