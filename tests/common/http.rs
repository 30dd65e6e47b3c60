//! A switch that serves HTTP, and its client.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use npcc_testkit::wait;

use super::Lab;
use super::Running;
use super::busy::{BUSY, busy};

/// Returns an address with a port that was free a moment ago.
pub fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Sends a GET; returns the head and the body of the response, or none if the server does not answer.
pub fn get(address: SocketAddr, path: &str, headers: &str) -> Option<(String, String)> {
    get_by(address, &address.to_string(), path, headers)
}

/// Sends a GET with another host name in `Host`.
pub fn get_by(
    address: SocketAddr,
    host: &str,
    path: &str,
    headers: &str,
) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(wait::LONG)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// A busy switch that serves HTTP.
pub struct Watched {
    pub lab: Lab,
    pub address: SocketAddr,
    pub running: Running,
}

impl Watched {
    /// Starts the switch, and waits until it answers and has signalled a sender.
    pub fn new() -> Watched {
        let (lab, address) = (busy(), free());
        let mut text = BUSY.to_owned();
        let socket = lab.path("switch.sock");
        writeln!(
            text,
            "telemetry: {{ socket: {}, http: \"{address}\", http_hosts: [dci1] }}",
            socket.display()
        )
        .unwrap();
        lab.config(&text);
        let running = lab.start(&[]);
        let watched = Watched {
            lab,
            address,
            running,
        };
        wait::until("the page answers", wait::LONG, || {
            get(address, "/metrics", "").is_some()
        });
        let pair = ["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x31"];
        watched.lab.done(&pair);
        wait::until("a CNP is sent", wait::LONG, || {
            let cnps = watched.sample("npcc_cnps_sent_total{port=\"wan0\",priority=\"3\"}");
            cnps > Some(0.0)
        });
        watched
    }

    /// Returns a scrape in the classic text format.
    pub fn scrape(&self) -> String {
        get(self.address, "/metrics", "").unwrap().1
    }

    /// Returns a sample of a scrape, by its name and labels.
    pub fn sample(&self, series: &str) -> Option<f64> {
        let scrape = self.scrape();
        let line = scrape.lines().find(|line| line.starts_with(series))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}
