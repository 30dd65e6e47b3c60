//! nats-server processes from the configurations that the package ships.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Process, wait, write};

const PAIR: &str = include_str!("../../../packaging/feed/nats-pair.conf");
const THREE: &str = include_str!("../../../packaging/feed/nats-three.conf");

/// nats-server that can be stopped and started again.
#[derive(Debug)]
pub struct Nats {
    config: PathBuf,
    port: u16,
    pub process: Option<Process>,
}

impl Nats {
    /// Starts the two servers of a pair; `edit` may change their configurations.
    pub fn pair(folder: &Path, edit: impl Fn(String) -> String) -> [Nats; 2] {
        let [a, b, route_a, route_b] = ports();
        [(1, a, route_a, route_b), (2, b, route_b, route_a)].map(|(number, own, route, other)| {
            let text = PAIR
                .replace(
                    "server_name: nats-1",
                    &format!("server_name: nats-{number}"),
                )
                .replace("127.0.0.1:4222", &format!("127.0.0.1:{own}"))
                .replace("127.0.0.1:6222", &format!("127.0.0.1:{route}"))
                .replace("127.0.0.1:6223", &format!("127.0.0.1:{other}"));
            Nats::start(folder, &format!("nats-{number}"), own, &edit(text))
        })
    }

    /// Starts one server with JetStream: the configuration for three, without its cluster.
    pub fn with_history(folder: &Path) -> Nats {
        let [port, ..] = ports();
        let (before, rest) = THREE.split_once("cluster {").unwrap();
        let (_, after) = rest.split_once("\n}\n").unwrap();
        let text = (before.to_owned() + after)
            .replace("127.0.0.1:4222", &format!("127.0.0.1:{port}"))
            .replace("/var/lib/nats", folder.join("store").to_str().unwrap());
        Nats::start(folder, "nats-1", port, &text)
    }

    fn start(folder: &Path, name: &str, port: u16, text: &str) -> Nats {
        let config = folder.join(format!("{name}.conf"));
        write(&config, text);
        let mut nats = Nats {
            config,
            port,
            process: None,
        };
        nats.run();
        nats
    }

    /// Starts the process and waits until it listens.
    pub fn run(&mut self) {
        let mut command = Command::new("nats-server");
        command
            .arg("-c")
            .arg(&self.config)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(Process(command.spawn().unwrap()));
        wait("nats-server", Duration::from_secs(20), || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Returns the addresses of servers.
pub fn addresses(servers: &[Nats]) -> Vec<String> {
    servers.iter().map(Nats::address).collect()
}

/// Returns ports of loopback that nobody listens on.
fn ports() -> [u16; 4] {
    let listeners: Vec<TcpListener> = (0..4)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    std::array::from_fn(|at| listeners[at].local_addr().unwrap().port())
}
