//! The sockets' ends in the switch.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::unistd::Group;

use super::access::{Access, Place};
use super::answer;
use super::orders::Management;
use super::room::Room;

/// Clients of a socket that are served at a time. Each is left after a bounded time ([`super::patience`]), and those of the
/// socket for reading take no place from those who change things; of the other socket's the last is kept for a change.
const CLIENTS: usize = 16;
/// Those of one user at the socket for reading.
const CLIENTS_OF_USER: usize = 4;
/// Clients that are taken in a turn: no flood of them keeps the management thread from its other work.
const BACKLOG: usize = 64;
/// How long clients have for the end of their answers once the switch stops.
const LEAVE: Duration = Duration::from_secs(2);

/// The socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another switch answers there.
    #[error("another switch listens on {0}: stop it, or set {key} to another path", key = .1.key())]
    InUse(PathBuf, Access),
    /// Something else lies there.
    #[error("{0} exists and is no socket: remove it, or set {key} to another path", key = .1.key())]
    NotASocket(PathBuf, Access),
    /// The system refused.
    #[error(
        "cannot listen on {path}: {source} (does the folder exist, and may this user write there?)"
    )]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Most places of one user.
const fn each(access: Access) -> usize {
    match access {
        Access::Change => CLIENTS,
        Access::Read => CLIENTS_OF_USER,
    }
}

/// A listening socket; its file goes with it.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    access: Access,
    room: Room,
}

impl Server {
    /// Listens on `path`, for root and `group`. The socket of a switch that died is replaced, that of a living one is not.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn bind(path: &Path, group: &str, access: Access) -> Result<Server, SocketError> {
        let io = |source| SocketError::Io {
            path: path.to_owned(),
            source,
        };
        match UnixStream::connect(path) {
            Ok(_) => return Err(SocketError::InUse(path.to_owned(), access)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
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
            room: Room::new("npcc-client", CLIENTS, each(access)),
        };
        // Without such a group only the owner may ask.
        let group = Group::from_name(group).ok().flatten();
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        if let Some(group) = group {
            chown(path, None, Some(group.gid.as_raw())).map_err(io)?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(io)?;
        server.listener.set_nonblocking(true).map_err(io)?;
        Ok(server)
    }

    /// Gives whoever waits a thread; returns when nobody does, or after as many as may wait.
    fn serve_waiting(&mut self, management: &Arc<Management>, stop: &Arc<AtomicBool>) {
        for _ in 0..BACKLOG {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            let stream = Arc::new(stream);
            let (client, access) = (Arc::clone(&stream), self.access);
            let is_kept = access == Access::Change && self.room.left() == 1;
            let place = if is_kept { Place::Change } else { Place::Any };
            // Nobody's, where the system does not say.
            let user = answer::user(&client).unwrap_or(u32::MAX);
            let (management, stop) = (Arc::clone(management), Arc::clone(stop));
            let started = self.room.start(user, move || {
                // A client that goes away in the middle is its own affair.
                let _ = answer::serve(&client, &management, (access, place), &stop);
            });
            if let Err(why) = started {
                answer::refuse(&stream, &why.to_string());
            }
        }
    }
}

/// Serves until `stop`, looking up every 10 ms; `idle` is called once a turn. Returns once all clients are served or left.
pub fn serve(
    mut servers: Vec<Server>,
    management: &Arc<Management>,
    stop: &Arc<AtomicBool>,
    mut idle: impl FnMut(),
) {
    while !stop.load(Ordering::Relaxed) {
        for server in &mut servers {
            server.serve_waiting(management, stop);
        }
        idle();
        std::thread::sleep(Duration::from_millis(10));
    }
    for server in &mut servers {
        server.room.wait(LEAVE);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = fs::remove_file(&self.path);
    }
}
