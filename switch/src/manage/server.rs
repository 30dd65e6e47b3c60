//! The socket's end in the switch.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::unistd::Group;

use super::orders::Management;
use super::protocol::{Reply, Request};
use super::reload::ReloadError;
use super::tables;
use super::view::View;

/// A question is never longer.
const LONGEST_REQUEST: u64 = 64 << 10;
/// A client that says nothing, or does not read, is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// The socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another switch answers there.
    #[error("another switch listens on {0}: stop it, or set telemetry.socket to another path")]
    InUse(PathBuf),
    /// Something else lies there.
    #[error("{0} exists and is no socket: remove it, or set telemetry.socket to another path")]
    NotASocket(PathBuf),
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

/// A listening socket; its file goes with it.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Listens on `path`, for root and `group`. The socket of a switch that died is replaced, that of a living one is not.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn bind(path: &Path, group: &str) -> Result<Server, SocketError> {
        let io = |source| SocketError::Io {
            path: path.to_owned(),
            source,
        };
        match UnixStream::connect(path) {
            Ok(_) => return Err(SocketError::InUse(path.to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                use std::os::unix::fs::FileTypeExt;
                if !fs::metadata(path).map_err(io)?.file_type().is_socket() {
                    return Err(SocketError::NotASocket(path.to_owned()));
                }
                fs::remove_file(path).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        let listener = UnixListener::bind(path).map_err(io)?;
        let server = Server {
            listener,
            path: path.to_owned(),
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

    /// Answers whoever waits, one after the other; returns when nobody does.
    pub fn serve_waiting(&self, management: &Management) {
        while let Ok((stream, _)) = self.listener.accept() {
            // A client that goes away in the middle is its own affair.
            let _ = answer(stream, management);
        }
    }

    /// Serves until `stop`, looking up every 10 ms; `idle` is called once a turn.
    pub fn serve(&self, management: &Management, stop: &AtomicBool, mut idle: impl FnMut()) {
        while !stop.load(Ordering::Relaxed) {
            self.serve_waiting(management);
            idle();
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = fs::remove_file(&self.path);
    }
}

fn done<E: std::fmt::Display>(done: Result<(), E>) -> Reply {
    match done {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Error(error.to_string()),
    }
}

fn show(view: &View, name: &str, top: Option<usize>) -> Reply {
    let Some(table) = tables::named(name) else {
        return Reply::Error(format!("there is no table `{name}`"));
    };
    match table.look(view, top) {
        Ok(data) => Reply::Table(data),
        Err(error) => Reply::Error(error.to_string()),
    }
}

fn answer(stream: UnixStream, management: &Management) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(Read::take(&stream, LONGEST_REQUEST)).read_line(&mut line)?;
    let reply = match serde_json::from_str(&line) {
        Ok(Request::Snapshot) => Reply::Snapshot(Box::new(management.view.shown())),
        Ok(Request::Show { table, top }) => show(&management.view, &table, top),
        Ok(Request::ClearCounters) => {
            management.view.clear_counters();
            Reply::Done
        }
        Ok(Request::ClearWatermarks) => done(management.clear_watermarks()),
        Ok(Request::Weight { priority, weight }) => done(management.set_weight(priority, weight)),
        Ok(Request::Threshold {
            priority,
            key,
            value,
        }) => done(management.set_threshold(priority, &key, &value)),
        Ok(Request::Reload) => match management.reload() {
            Ok(outcome) => Reply::Reloaded(outcome),
            Err(error @ (ReloadError::Invalid(_) | ReloadError::Torn { .. })) => {
                Reply::Invalid(error.to_string())
            }
            Err(error) => Reply::Error(error.to_string()),
        },
        Ok(Request::Port { name, up }) => done(management.set_admin(&name, up)),
        Ok(Request::Npcc(order)) => done(management.npcc_order(&order)),
        Err(error) => Reply::Error(format!("not a request: {error}")),
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    (&stream).write_all(text.as_bytes())
}
