//! Relay between a feed and its nats-server that loses a part of the messages about ends on their way to the feed. All else passes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use npcc_testkit::relay::Relay;

/// Messages about ends.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Messages that the server sent.
    pub(crate) sent: AtomicU64,
    /// Messages of these that were lost.
    pub(crate) lost: AtomicU64,
}

/// Relay of which a feed is the client.
pub(crate) struct LossyRelay {
    /// Address for feeds, as in their settings.
    pub(crate) address: String,
    pub(crate) counts: Arc<Counts>,
}

impl LossyRelay {
    /// Starts a relay to a server, whose address is as in the settings of feeds. `percent` of the messages are lost.
    pub(crate) fn start(server: &str, percent: u64) -> LossyRelay {
        let server = server.strip_prefix("nats://").unwrap();
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        let pass = move |number, server, feed| lose(server, feed, (percent, number), &counted);
        let relay = Relay::with(server.parse().unwrap(), pass).unwrap();
        LossyRelay {
            address: format!("nats://127.0.0.1:{}", relay.port),
            counts,
        }
    }
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

#[test]
fn the_share_of_messages_about_ends_is_lost_and_nothing_else() {
    const SENT: u64 = 10_000;
    let of = |subject: &str| format!("MSG {subject} 1 2\r\nhi\r\n");
    let (ends, other) = (of("npcc.dc1.edge-1.ends"), of("npcc.dc1.edge-1.state"));
    let said = format!(
        "INFO {{\"connect_urls\":[]}}\r\n{}",
        (ends.clone() + &other).repeat(10_000)
    );
    for seed in 1..4 {
        let (mut passed, counts) = (Vec::new(), Counts::default());
        lose(said.as_bytes(), &mut passed, (30, seed), &counts).unwrap();
        let (sent, lost) = (counts.sent.into_inner(), counts.lost.into_inner());
        assert_eq!(sent, SENT);
        assert!(lost.abs_diff(SENT * 3 / 10) < SENT / 50, "{lost}");
        let passed = String::from_utf8(passed).unwrap();
        assert_eq!(passed.matches(&ends).count() as u64, SENT - lost);
        assert_eq!(passed.matches(&other).count() as u64, SENT);
        assert!(!passed.contains("connect_urls"));
    }
}
