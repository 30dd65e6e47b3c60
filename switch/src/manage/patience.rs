//! Client stream with deadlines: reading and writing fail when no byte moves, when they take too long in all, and when the switch stops.
//!
//! Law: whatever a client does or leaves, a thread that serves it is free again after [`Limits::overall`] for its request and again for its
//! answer (of a capture: for each record), and [`SLICE`] after the switch begins to stop ([`GRACE`] while it writes).

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest wait of one system call before the limits are checked.
const SLICE: Duration = Duration::from_millis(50);
/// Time left for an answer once the switch stops.
const GRACE: Duration = Duration::from_millis(300);

npcc_pipeline::defaults! {
    /// Time limits of a client, for its request and again for reading the answer.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Limits {
        /// Longest time without a byte that moves.
        pub(super) idle: Duration = Duration::from_secs(5),
        /// Longest time in all.
        pub(super) overall: Duration = Duration::from_secs(30),
    }
}

/// Client stream with deadlines.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    stream: &'a UnixStream,
    limits: Limits,
    stop: &'a AtomicBool,
    idle: Instant,
    overall: Instant,
    /// Time allowed after a stop; `end` is the resulting deadline, set when the stop is first seen.
    grace: Duration,
    end: Option<Instant>,
}

impl<'a> Patience<'a> {
    /// Wraps a stream to read a request from, until `stop`.
    ///
    /// # Errors
    /// Fails if the system refuses the timeouts.
    pub(super) fn new(
        stream: &'a UnixStream,
        limits: Limits,
        stop: &'a AtomicBool,
    ) -> Result<Patience<'a>> {
        stream.set_nonblocking(false)?;
        let slice = SLICE.min(limits.idle);
        stream.set_read_timeout(Some(slice))?;
        stream.set_write_timeout(Some(slice))?;
        let now = Instant::now();
        Ok(Patience {
            stream,
            limits,
            stop,
            idle: now + limits.idle,
            overall: now + limits.overall,
            grace: Duration::ZERO,
            end: None,
        })
    }

    /// Restarts the limits for the answer, and allows [`GRACE`] after a stop; called when the request has been read.
    pub(super) fn answer(&mut self) {
        let now = Instant::now();
        (self.idle, self.overall) = (now + self.limits.idle, now + self.limits.overall);
        self.grace = GRACE;
    }

    /// Fails if a deadline has passed or the switch stops.
    fn check(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.stop.load(Ordering::Relaxed) {
            let end = *self.end.get_or_insert(now + self.grace);
            if now >= end {
                return Err(Error::new(ErrorKind::ConnectionAborted, "the switch stops"));
            }
        }
        if now >= self.idle || now >= self.overall {
            return Err(Error::new(ErrorKind::TimedOut, "the client is too slow"));
        }
        Ok(())
    }

    /// Retries `once`, one slice at a time, until bytes move or a deadline passes.
    fn wait(&mut self, mut once: impl FnMut(&UnixStream) -> Result<usize>) -> Result<usize> {
        loop {
            self.check()?;
            match once(self.stream) {
                Ok(moved) => {
                    self.idle = Instant::now() + self.limits.idle;
                    return Ok(moved);
                }
                Err(error) if waits(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn waits(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

impl Read for Patience<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.wait(|mut stream| stream.read(into))
    }
}

impl Write for Patience<'_> {
    fn write(&mut self, from: &[u8]) -> Result<usize> {
        self.wait(|mut stream| stream.write(from))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::sync::Arc;

    const SHORT: Duration = Duration::from_millis(100);
    /// A wait that no other limit ends would take so long.
    const HOUR: Duration = Duration::from_secs(3_600);
    const IDLE: Limits = Limits {
        idle: SHORT,
        overall: HOUR,
    };
    const OVERALL: Limits = Limits {
        idle: HOUR,
        overall: SHORT,
    };
    const NONE: Limits = Limits {
        idle: HOUR,
        overall: HOUR,
    };

    /// Returns the time that reading a line took, and the error that ended it.
    fn read(stream: &UnixStream, stop: &AtomicBool, limits: Limits) -> (Duration, ErrorKind) {
        let begun = Instant::now();
        let mut line = String::new();
        let patience = Patience::new(stream, limits, stop).unwrap();
        let ended = BufReader::new(patience).read_line(&mut line);
        (begun.elapsed(), ended.unwrap_err().kind())
    }

    #[test]
    fn a_silent_client_is_left_after_the_idle_time_and_a_slow_one_after_the_overall_time() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let going = AtomicBool::new(false);
        let (time, why) = read(&ours, &going, IDLE);
        assert_eq!(why, ErrorKind::TimedOut);
        assert!(time >= SHORT, "{time:?}");
        let writer = std::thread::spawn(move || {
            // Until the reader is gone, or the test has failed.
            for _ in 0..2_000 {
                if (&theirs).write(b"x").is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (time, why) = read(&ours, &going, OVERALL);
        assert_eq!(why, ErrorKind::TimedOut);
        assert!(time >= SHORT, "{time:?}");
        drop(ours);
        writer.join().unwrap();
    }

    #[test]
    fn a_client_that_does_not_read_is_left() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let going = AtomicBool::new(false);
        let mut patience = Patience::new(&ours, IDLE, &going).unwrap();
        patience.answer();
        let ended = patience.write_all(&vec![b'x'; 16 << 20]);
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_stop_ends_the_waiting_at_once_and_an_answer_soon() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let setter = Arc::clone(&stop);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            setter.store(true, Ordering::Relaxed);
        });
        let (_, why) = read(&ours, &stop, NONE);
        assert_eq!(why, ErrorKind::ConnectionAborted);
        let mut patience = Patience::new(&ours, NONE, &stop).unwrap();
        patience.answer();
        assert!(patience.write_all(b"what fits is still told").is_ok());
        let ended = patience.write_all(&vec![b'x'; 16 << 20]);
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    }
}
