//! A peer of a pair that publishes made-up ends under its own name.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

/// Connection to a nats-server, as the user of a box's feed.
pub(crate) struct Liar {
    name: &'static str,
    server: BufReader<TcpStream>,
    /// Number of the next row.
    next: usize,
}

impl Liar {
    pub(crate) fn connect(server: &str, user: &'static str, password: &str) -> Liar {
        let server = TcpStream::connect(server.strip_prefix("nats://").unwrap()).unwrap();
        let mut liar = Liar {
            name: user,
            server: BufReader::new(server),
            next: 1,
        };
        let user = json!({"user": user, "pass": password, "verbose": false, "pedantic": false});
        liar.send(&format!("CONNECT {user}\r\n"));
        liar
    }

    /// Publishes rows as changes, as many a message as a feed does.
    pub(crate) fn publish(&mut self, rows: &[Value]) {
        let name = self.name;
        for rows in rows.chunks(200) {
            let body = json!({"delta": {"first": self.next, "rows": rows}});
            let message = json!({"v": 1, "box": name, "epoch": 1, "body": body}).to_string();
            let length = message.len();
            self.send(&format!(
                "PUB npcc.dc1.{name}.ends.delta {length}\r\n{message}\r\n"
            ));
            self.next += rows.len();
            // The server cuts off a reader that is 16 MB behind.
            sleep(Duration::from_millis(5));
        }
    }

    /// Sends a command; the server must accept it.
    fn send(&mut self, command: &str) {
        // One write: a second one would wait for the acknowledgement of the first.
        let command = format!("{command}PING\r\n");
        self.server.get_ref().write_all(command.as_bytes()).unwrap();
        let mut line = String::new();
        while line != "PONG\r\n" {
            assert!(!line.starts_with("-ERR"), "{line}");
            line.clear();
            assert_ne!(self.server.read_line(&mut line).unwrap(), 0, "closed");
        }
    }
}
