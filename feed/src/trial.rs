//! `npcc-feed trial`: a pair of servers and two feeds on loopback, from the configuration that the package ships, until it is stopped.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Configuration of a server of a pair, as the package ships it: for nats-1, with ports 4222 and 6222, and 6223 of the other.
const PAIR: &str = include_str!("../../packaging/feed/nats-pair.conf");
/// Settings of a feed, as the package ships them: for edge-1.
const SETTINGS: &str = include_str!("../../packaging/feed/feed.yaml");
/// Time in which a process ends after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Reason why there is no trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// nats-server is not installed.
    #[error("nats-server cannot be started ({0}): apt-get install nats-server")]
    NoServer(io::Error),
    /// The system refused.
    #[error("cannot prepare the trial, {0}: {1}")]
    Io(String, io::Error),
}

/// Pair of servers and two feeds in a folder of their own. Dropping it stops the processes and removes the folder.
#[derive(Debug)]
pub struct Trial {
    folder: PathBuf,
    children: Vec<Child>,
    /// Settings of the two feeds.
    pub settings: [PathBuf; 2],
    /// Addresses of the two servers.
    pub servers: [String; 2],
}

impl Trial {
    /// Starts two servers, and two feeds with `feed` (a path of npcc-feed). `sockets` are those of the two boxes' switches: the read-only
    /// one and that for suggestions.
    ///
    /// # Errors
    /// Fails with [`TrialError`].
    pub fn start(
        feed: &Path,
        sockets: &[(PathBuf, Option<PathBuf>); 2],
    ) -> Result<Trial, TrialError> {
        let folder = std::env::temp_dir().join(format!("npcc-feed-trial-{}", std::process::id()));
        let at = |name: &str| folder.join(name);
        let mut trial = Trial {
            settings: [at("edge-1.yaml"), at("edge-2.yaml")],
            servers: Default::default(),
            children: Vec::new(),
            folder: folder.clone(),
        };
        let io = |error| TrialError::Io(folder.display().to_string(), error);
        fs::create_dir(&folder).map_err(io)?;
        let [a, b, route_a, route_b] = free_ports().map_err(io)?;
        trial.servers = [a, b].map(|port| format!("nats://127.0.0.1:{port}"));
        for (name, own, route, other) in [
            ("nats-1", a, route_a, route_b),
            ("nats-2", b, route_b, route_a),
        ] {
            let text = PAIR
                .replace("server_name: nats-1", &format!("server_name: {name}"))
                .replace("127.0.0.1:4222", &format!("127.0.0.1:{own}"))
                .replace("127.0.0.1:6222", &format!("127.0.0.1:{route}"))
                .replace("127.0.0.1:6223", &format!("127.0.0.1:{other}"));
            let config = at(&format!("{name}.conf"));
            write(&config, &text).map_err(io)?;
            let mut command = Command::new("nats-server");
            command.arg("-c").arg(&config);
            trial.spawn(command, name).map_err(TrialError::NoServer)?;
        }
        for number in [1, 2] {
            trial
                .start_feed(feed, number, &sockets[number - 1])
                .map_err(io)?;
        }
        Ok(trial)
    }

    fn start_feed(
        &mut self,
        feed: &Path,
        number: usize,
        (socket, control): &(PathBuf, Option<PathBuf>),
    ) -> io::Result<()> {
        let name = format!("edge-{number}");
        let password = self.folder.join(format!("{name}.password"));
        write(&password, &format!("change-me-{number}"))?;
        // A box's own server is the first.
        let mut servers = self.servers.clone();
        servers.rotate_left(number - 1);
        let control = control
            .as_ref()
            .map_or_else(|| "null".to_owned(), |path| path.display().to_string());
        let text = SETTINGS
            .replace("box: edge-1", &format!("box: {name}"))
            .replace("peers: [edge-2]", &format!("peers: [edge-{}]", 3 - number))
            .replace("user: edge-1", &format!("user: {name}"))
            .replace(
                "nats://127.0.0.1:4222, nats://127.0.0.1:4223",
                &servers.join(", "),
            )
            .replace(
                "/etc/npcc-switch/feed.password",
                &password.display().to_string(),
            )
            .replace(
                "control: /run/npcc-switch-ro.sock",
                &format!("control: {control}"),
            )
            .replace(
                "{ socket: /run/npcc-switch-ro.sock",
                &format!("{{ socket: {}", socket.display()),
            );
        let settings = self.settings[number - 1].clone();
        write(&settings, &text)?;
        let mut command = Command::new(feed);
        command.arg("run").arg("-c").arg(settings);
        self.spawn(command, &name)
    }

    fn spawn(&mut self, mut command: Command, name: &str) -> io::Result<()> {
        let log = fs::File::create(self.folder.join(format!("{name}.log")))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.children.push(child);
        Ok(())
    }

    /// Returns the folder with the configurations and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // Feeds stop before the servers, so that they can still flush their messages.
        for child in self.children.iter_mut().rev() {
            stop(child);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn stop(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id()) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(id),
            nix::sys::signal::Signal::SIGTERM,
        );
    }
    let deadline = std::time::Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns four ports of loopback that nobody listens on at this moment.
fn free_ports() -> io::Result<[u16; 4]> {
    let mut listeners = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Writes a file that only its owner may read.
fn write(path: &Path, text: &str) -> io::Result<()> {
    use io::Write;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
