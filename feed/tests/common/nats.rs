//! nats-server processes from the configurations that the package ships.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Process, wait, write};

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

    /// Starts three servers with JetStream.
    pub fn three(folder: &Path) -> [Nats; 3] {
        let [a, b, c, route_a, route_b, route_c] = ports();
        let servers = [
            (1, a, route_a, [route_b, route_c]),
            (2, b, route_b, [route_a, route_c]),
            (3, c, route_c, [route_a, route_b]),
        ];
        servers.map(|(number, own, route, others)| {
            let name = format!("nats-{number}");
            let text = THREE
                .replace("server_name: nats-1", &format!("server_name: {name}"))
                .replace("127.0.0.1:4222", &format!("127.0.0.1:{own}"))
                .replace("127.0.0.1:6222", &format!("127.0.0.1:{route}"))
                .replace("127.0.0.1:6223", &format!("127.0.0.1:{}", others[0]))
                .replace("127.0.0.1:6224", &format!("127.0.0.1:{}", others[1]))
                .replace("/var/lib/nats", folder.join(&name).to_str().unwrap());
            Nats::start(folder, &name, own, &text)
        })
    }

    /// Starts a pair, and a server with JetStream that is a leaf node of it.
    pub fn pair_with_history(folder: &Path) -> ([Nats; 2], Nats) {
        let [history, leaf_a, leaf_b] = ports();
        let mut leaves = [leaf_a, leaf_b].into_iter();
        let pair = Nats::pair(folder, |text| {
            let leaf = leaves.next().unwrap();
            text.replace(
                "# leafnodes { listen: 127.0.0.1:7422",
                &format!("leafnodes {{ listen: 127.0.0.1:{leaf}"),
            )
            .replace("# { user: history", "{ user: history")
        });
        let text = HISTORY
            .replace("127.0.0.1:4222", &format!("127.0.0.1:{history}"))
            .replace("127.0.0.1:7422", &format!("127.0.0.1:{leaf_a}"))
            .replace("127.0.0.1:7423", &format!("127.0.0.1:{leaf_b}"))
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
fn ports<const N: usize>() -> [u16; N] {
    let listeners = std::array::from_fn::<_, N, _>(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
