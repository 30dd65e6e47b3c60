//! Relay between a feed and its nats-server that loses a part of the messages about ends on their way to the feed. All else passes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages about ends.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Messages that the server sent.
    pub(crate) sent: AtomicU64,
    /// Messages of these that were lost.
    pub(crate) lost: AtomicU64,
}

/// Relay. Its threads go on until the test's process ends.
pub(crate) struct Relay {
    /// Address for feeds, as in their settings.
    pub(crate) address: String,
    pub(crate) counts: Arc<Counts>,
}

impl Relay {
    /// Starts a relay to a server, whose address is as in the settings of feeds. `percent` of the messages are lost.
    pub(crate) fn start(server: &str, percent: u64) -> Relay {
        let server = server.strip_prefix("nats://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay {
            address: format!("nats://{}", listener.local_addr().unwrap()),
            counts: Arc::default(),
        };
        let counts = Arc::clone(&relay.counts);
        std::thread::spawn(move || {
            for (feed, seed) in listener.incoming().zip(1..) {
                let (feed, counts) = (feed.unwrap(), Arc::clone(&counts));
                // A server that was killed refuses, and so does the relay.
                if let Ok(server) = TcpStream::connect(&server) {
                    std::thread::spawn(move || connect(&feed, &server, (percent, seed), &counts));
                }
            }
        });
        relay
    }
}

/// Passes octets both ways until either end is gone.
fn connect(feed: &TcpStream, server: &TcpStream, loss: (u64, u64), counts: &Counts) {
    std::thread::scope(|scope| {
        let close = || {
            let _ = feed.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        };
        scope.spawn(move || {
            let _ = io::copy(&mut &*feed, &mut &*server);
            close();
        });
        let _ = lose(server, feed, loss, counts);
        close();
    });
}

/// Passes what the server sends; messages about ends are lost by chance.
fn lose(
    from: impl Read,
    mut to: impl Write,
    (percent, seed): (u64, u64),
    counts: &Counts,
) -> io::Result<()> {
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut from = BufReader::new(from);
    loop {
        let mut frame = Vec::new();
        if from.read_until(b'\n', &mut frame)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&frame).into_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // MSG SUBJECT SUBSCRIPTION [REPLY] OCTETS, and with headers HMSG ... HEADERS OCTETS; then the octets and a line's end.
            ["MSG" | "HMSG", subject, .., octets] => {
                let rest = octets.parse::<u64>().unwrap() + 2;
                from.by_ref().take(rest).read_to_end(&mut frame)?;
                if subject.split('.').nth(3) == Some("ends") {
                    counts.sent.fetch_add(1, Ordering::Relaxed);
                    if chance(&mut dice, percent) {
                        counts.lost.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                }
            }
            // A client would go around the relay to the servers that are named there.
            ["INFO", ..] => frame = line.replace("connect_urls", "unused").into_bytes(),
            _ => {}
        }
        to.write_all(&frame)?;
    }
}

/// Returns true in `percent` of the cases, the same ones for a seed (xorshift).
fn chance(dice: &mut u64, percent: u64) -> bool {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    (*dice >> 33) % 100 < percent
}
