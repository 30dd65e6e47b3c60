//! Server side of the management sockets.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Gid, Group};
use npcc_api::client::connect;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::access::{Access, REPORTERS};
use super::answer::author;
use super::http::client::{Client, Limits};
use super::http::connection;
use super::http::places::Places;
use super::http::router::router;
use super::management::Management;
use super::waiting::Waiting;

/// Most clients of a socket that are served at a time. Each is dropped after a bounded time ([`super::http::client`]). Clients of the read-only
/// socket take no place from those who change things; of the other socket's places the last is kept for a change.
const CLIENTS: usize = 16;
/// Most clients of one user at the read-only socket.
const CLIENTS_OF_USER: usize = 4;
/// Most clients without a place that are told so at a time; others are cut off.
const REFUSED: usize = 16;
/// Interval of the management thread's other work.
const TURN: Duration = Duration::from_millis(10);
/// Time for which a thread that carried a request out waits for another.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Time that clients have for the end of their answers once the switch stops.
const LEAVE: Duration = Duration::from_secs(2);

/// Time that another switch has at the start to take a client.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reason why the socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another switch answers there.
    #[error("another switch listens on {0}: stop it, or set {key} to another path", key = .1.key())]
    InUse(PathBuf, Access),
    /// A file that is no socket has this path.
    #[error("{0} exists and is no socket: remove it, or set {key} to another path", key = .1.key())]
    NotASocket(PathBuf, Access),
    /// Another switch has the socket and serves nobody.
    #[error("another switch listens on {0} and takes no clients, it hangs: stop it (`ss -xlp` shows its process), or set {key} to another path", key = .1.key())]
    Hangs(PathBuf, Access),
    /// The path is a symbolic link to a file that does not exist.
    #[error("{0} is a symbolic link to a file that does not exist: remove it, or set {key} to another path", key = .1.key())]
    DeadLink(PathBuf, Access),
    /// The system refused.
    #[error(
        "cannot listen on {path}: {error} (does the folder exist, and may this user write there?)"
    )]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system; part of the message, and so not its source.
        error: std::io::Error,
    },
}

/// Connects to a socket within `patience`.
fn within(path: &Path, patience: Duration) -> std::io::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match connect::once(path)? {
            Some(_) => return Ok(()),
            None if Instant::now() < deadline => std::thread::sleep(TURN),
            None => return Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Returns the most places of one user.
const fn each(access: Access) -> usize {
    match access {
        Access::ReadWrite => CLIENTS,
        Access::Report | Access::ReadOnly => CLIENTS_OF_USER,
    }
}

/// Listening socket; dropping it removes its file.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    access: Access,
    /// Number of the group [`REPORTERS`], if there is one.
    reporters: Option<Gid>,
    places: Arc<Places>,
    waiting: Waiting,
}

impl Server {
    /// Listens on `path`, for root and `group`. Replaces the socket of a switch that died, not that of a running one.
    ///
    /// # Errors
    /// Fails with [`SocketError`].
    pub fn bind(path: &Path, group: &str, access: Access) -> Result<Server, SocketError> {
        let io = |error| SocketError::Io {
            path: path.to_owned(),
            error,
        };
        match within(path, PATIENCE) {
            Ok(_) => return Err(SocketError::InUse(path.to_owned(), access)),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(SocketError::Hangs(path.to_owned(), access));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink()) {
                    return Err(SocketError::DeadLink(path.to_owned(), access));
                }
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                use std::os::unix::fs::FileTypeExt;
                if !fs::metadata(path).map_err(io)?.file_type().is_socket() {
                    return Err(SocketError::NotASocket(path.to_owned(), access));
                }
                fs::remove_file(path).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        let listener = UnixListener::bind(path).map_err(io)?;
        let server = Server {
            listener,
            path: path.to_owned(),
            access,
            reporters: Group::from_name(REPORTERS)
                .ok()
                .flatten()
                .map(|group| group.gid),
            places: Arc::new(Places::new(
                CLIENTS,
                each(access),
                access == Access::ReadWrite,
            )),
            waiting: Waiting::default(),
        };
        // Without such a group only the owner may connect.
        let group = Group::from_name(group).ok().flatten();
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        if let Some(group) = group {
            chown(path, None, Some(group.gid.as_raw())).map_err(io)?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(io)?;
        server.listener.set_nonblocking(true).map_err(io)?;
        Ok(server)
    }

    /// Returns the rights of a client of this group: those of the socket, and on the read-only one more for the group of the feed.
    fn access_of(&self, group: Option<Gid>) -> Access {
        match self.access {
            Access::ReadOnly if self.reporters.is_some() && group == self.reporters => {
                Access::Report
            }
            access => access,
        }
    }
}

/// Serves until `stop`; calls `idle` every 10 ms. Returns once all clients are served, or after `LEAVE`.
///
/// # Errors
/// Fails if the system gives no event queue.
pub fn serve(
    servers: Vec<Server>,
    management: &Arc<Management>,
    stop: &Arc<AtomicBool>,
    mut idle: impl FnMut(),
) -> std::io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name("npcc-client")
        .max_blocking_threads(2 * CLIENTS)
        .thread_keep_alive(KEEP_ALIVE)
        .build()?;
    let router = router(Arc::clone(management));
    runtime.block_on(async {
        let all: Vec<Arc<Places>> = servers.iter().map(|one| Arc::clone(&one.places)).collect();
        let accepting: Vec<_> = servers
            .into_iter()
            .map(|server| tokio::spawn(accept(server, router.clone(), Arc::clone(stop))))
            .collect();
        while !stop.load(Ordering::Relaxed) && !accepting.iter().any(JoinHandle::is_finished) {
            idle();
            sleep(TURN).await;
        }
        let leave = async {
            while !all.iter().all(|places| places.are_free()) {
                sleep(TURN).await;
            }
        };
        let _ = timeout(LEAVE, leave).await;
        // The sockets' files go with the servers.
        for one in accepting {
            one.abort();
            let _ = one.await;
        }
    });
    runtime.shutdown_background();
    Ok(())
}

/// Accepts the clients of a socket until the task is aborted.
async fn accept(mut server: Server, router: Router, stop: Arc<AtomicBool>) {
    let Ok(listener) = server
        .listener
        .try_clone()
        .and_then(tokio::net::UnixListener::from_std)
    else {
        return;
    };
    let refused = Arc::new(Semaphore::new(REFUSED));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                let path = server.path.display().to_string();
                server.waiting.note(&path, &error, Instant::now());
                sleep(TURN).await;
                continue;
            }
        };
        let credentials = getsockopt(&stream, PeerCredentials).ok();
        let access = server.access_of(credentials.map(|one| Gid::from_raw(one.gid())));
        // If the system does not report the user, the client counts as that of user `u32::MAX`.
        let user = credentials.map_or(u32::MAX, |one| one.uid());
        let place = server.places.take(user);
        // A client without a place is told why, if there are not too many of them.
        let permit = match &place {
            Ok(_) => None,
            Err(_) => match Arc::clone(&refused).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => continue,
            },
        };
        let who = (author(credentials.as_ref()), access);
        let client = Client::new(who, place, Limits::default(), Arc::clone(&stop));
        let router = router.clone();
        tokio::spawn(async move {
            connection::serve(stream, router, Arc::new(client)).await;
            drop(permit);
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use nix::unistd::{Uid, getgroups};

    use super::*;

    /// Group that this user may give a file to, and another one than the file's where there is one.
    fn group() -> Group {
        let root = Uid::effective().is_root();
        let named = |name: &str| Group::from_name(name).ok().flatten();
        let other = || {
            getgroups()
                .ok()?
                .into_iter()
                .find(|gid| *gid != Gid::effective())
        };
        let own = || {
            Group::from_gid(other().unwrap_or_else(Gid::effective))
                .ok()
                .flatten()
        };
        named("daemon").filter(|_| root).or_else(own).unwrap()
    }

    #[test]
    fn a_socket_is_for_its_owner_and_for_its_group_where_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch.sock");
        let rights = |group: &str| {
            let server = Server::bind(&path, group, Access::ReadWrite).unwrap();
            let file = fs::metadata(&path).unwrap();
            drop(server);
            assert!(!path.exists());
            (file.gid(), file.mode() & 0o777)
        };
        let group = group();
        assert_eq!(rights(&group.name), (group.gid.as_raw(), 0o660));
        let (gid, mode) = rights("no-such-group");
        assert_eq!((gid, mode), (Gid::effective().as_raw(), 0o600));
    }

    /// Law: on the read-only socket the feed's group may report, others read only; on the other socket everybody may all.
    #[test]
    fn the_group_of_the_feed_may_report_on_the_read_only_socket() {
        let folder = tempfile::tempdir().unwrap();
        let rights = |access: Access, reporters: Option<Gid>| {
            let path = folder.path().join("switch.sock");
            let mut server = Server::bind(&path, "no-such-group", access).unwrap();
            server.reporters = reporters;
            server.access_of(Some(Gid::effective()))
        };
        let (own, other) = (
            Gid::effective(),
            Gid::from_raw(Gid::effective().as_raw() + 1),
        );
        assert_eq!(rights(Access::ReadOnly, Some(own)), Access::Report);
        assert_eq!(rights(Access::ReadOnly, Some(other)), Access::ReadOnly);
        assert_eq!(rights(Access::ReadOnly, None), Access::ReadOnly);
        assert_eq!(rights(Access::ReadWrite, Some(own)), Access::ReadWrite);
    }

    #[test]
    fn a_socket_that_a_dead_switch_left_is_replaced_and_no_other_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch.sock");
        drop(UnixListener::bind(&path).unwrap());
        let running = Server::bind(&path, "no-such-group", Access::ReadOnly).unwrap();
        let second = Server::bind(&path, "no-such-group", Access::ReadOnly);
        assert!(matches!(second, Err(SocketError::InUse(..))));
        drop(running);
        fs::write(&path, "a note").unwrap();
        let third = Server::bind(&path, "no-such-group", Access::ReadOnly);
        assert!(
            matches!(third, Err(SocketError::NotASocket(..))),
            "{third:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "a note");
    }
}
