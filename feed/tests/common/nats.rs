//! nats-server processes from the configurations that the package ships.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use npcc_testkit::relay::Relay;
use npcc_testkit::wait::{LONG, until};

use super::{Process, write};

const PAIR: &str = include_str!("../../../packaging/feed/nats-pair.conf");
const HISTORY: &str = include_str!("../../../packaging/feed/nats-history.conf");
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
    pub fn pair(folder: &Path, mut edit: impl FnMut(String) -> String) -> [Nats; 2] {
        let [a, b, route_a, route_b] = ports();
        [(1, a, route_a, route_b), (2, b, route_b, route_a)].map(|(number, own, route, other)| {
            let name = format!("nats-{number}");
            let text = with_ports(PAIR, [(4222, own), (6222, route), (6223, other)]);
            let text = text.replace("server_name: nats-1", &format!("server_name: {name}"));
            Nats::start(folder, &name, own, &edit(text))
        })
    }

    /// Starts the two servers of a pair, with a relay in each one's route to the other.
    pub fn pair_with_relays(folder: &Path) -> ([Nats; 2], Vec<Relay>) {
        let mut relays = Vec::new();
        let pair = Nats::pair(folder, |text| {
            let (before, route) = text.split_once("change-me-route@127.0.0.1:").unwrap();
            let (port, after) = route.split_once(' ').unwrap();
            let server = ([127, 0, 0, 1], port.parse().unwrap());
            let relay = Relay::start(server.into()).unwrap();
            let text = format!("{before}change-me-route@127.0.0.1:{} {after}", relay.port);
            relays.push(relay);
            text
        });
        (pair, relays)
    }

    /// Starts three servers with JetStream; `edit` may change their configurations.
    pub fn three(folder: &Path, mut edit: impl FnMut(String) -> String) -> [Nats; 3] {
        let [a, b, c, route_a, route_b, route_c] = ports();
        let servers = [
            (1, a, route_a, [route_b, route_c]),
            (2, b, route_b, [route_a, route_c]),
            (3, c, route_c, [route_a, route_b]),
        ];
        servers.map(|(number, own, route, others)| {
            let name = format!("nats-{number}");
            let [second, third] = others;
            let ports = [(4222, own), (6222, route), (6223, second), (6224, third)];
            let text = with_ports(THREE, ports)
                .replace("server_name: nats-1", &format!("server_name: {name}"))
                .replace("/var/lib/nats", folder.join(&name).to_str().unwrap());
            Nats::start(folder, &name, own, &edit(text))
        })
    }

    /// Starts a pair, and a server with JetStream that is a leaf node of it.
    pub fn pair_with_history(folder: &Path) -> ([Nats; 2], Nats) {
        let [history, leaf_a, leaf_b] = ports();
        let mut leaves = [leaf_a, leaf_b].into_iter();
        let pair = Nats::pair(folder, |text| {
            let leaf = leaves.next().unwrap();
            let text = with_ports(&text, [(7422, leaf)]);
            text.replace("# leafnodes", "leafnodes")
                .replace("# { user: history", "{ user: history")
        });
        let ports = [(4222, history), (7422, leaf_a), (7423, leaf_b)];
        let text = with_ports(HISTORY, ports)
            .replace("/var/lib/nats", folder.join("store").to_str().unwrap());
        (pair, Nats::start(folder, "history", history, &text))
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
        until("nats-server", LONG, || {
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

/// Configuration with one of this test's ports for each port of loopback in it.
fn with_ports<const N: usize>(text: &str, ports: [(u16, u16); N]) -> String {
    let replace = |text: String, (port, own)| {
        text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{own}"))
    };
    ports.into_iter().fold(text.to_owned(), replace)
}

/// Returns ports of loopback that nobody listens on.
fn ports<const N: usize>() -> [u16; N] {
    let listeners = std::array::from_fn::<_, N, _>(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
