//! A client's stream, with an end to the waiting: reading and writing give up when nothing moves, when it takes too long in
//! all, and when the switch stops.
//!
//! Law: whatever a client does or leaves, a thread that talks with it is free again after [`Limits::overall`], and
//! [`SLICE`] after the switch was told to stop ([`GRACE`] while it writes).

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long one system call waits before the limits are looked at.
const SLICE: Duration = Duration::from_millis(50);
/// How long an answer may still be written once the switch stops.
const GRACE: Duration = Duration::from_millis(300);

npcc_pipeline::defaults! {
    /// How long a client is waited for, for its request and again for its reading of the answer.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Limits {
        /// Without a byte that moves.
        pub(super) idle: Duration = Duration::from_secs(5),
        /// In all.
        pub(super) overall: Duration = Duration::from_secs(30),
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    stream: &'a UnixStream,
    limits: Limits,
    stop: &'a AtomicBool,
    idle: Instant,
    overall: Instant,
    /// How long it goes on after a stop, and until when once it was seen.
    grace: Duration,
    end: Option<Instant>,
}

impl<'a> Patience<'a> {
    /// A stream to read a request from, until `stop`.
    ///
    /// # Errors
    /// When the system refuses to wait for a bounded time.
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

    /// The request is read and carried out: the answer has the limits anew, and a little time after a stop.
    pub(super) fn answer(&mut self) {
        let now = Instant::now();
        (self.idle, self.overall) = (now + self.limits.idle, now + self.limits.overall);
        self.grace = GRACE;
    }

    /// Refuses to wait any longer.
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

    /// Tries again, slice by slice, until bytes move or patience ends.
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

    const SHORT: Limits = Limits {
        idle: Duration::from_millis(100),
        overall: Duration::from_millis(400),
    };

    /// How long reading a line lasted, and why it ended.
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
        let (time, why) = read(&ours, &going, SHORT);
        assert_eq!(why, ErrorKind::TimedOut);
        assert!(time >= SHORT.idle && time < SHORT.overall, "{time:?}");
        let writer = std::thread::spawn(move || {
            // Until nobody reads any more, or the test has failed.
            for _ in 0..100 {
                if (&theirs).write(b"x").is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (time, why) = read(&ours, &going, SHORT);
        assert_eq!(why, ErrorKind::TimedOut);
        assert!(
            time >= SHORT.overall && time < 5 * SHORT.overall,
            "{time:?}"
        );
        drop(ours);
        writer.join().unwrap();
    }

    #[test]
    fn a_client_that_does_not_read_is_left() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let going = AtomicBool::new(false);
        let mut patience = Patience::new(&ours, SHORT, &going).unwrap();
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
        let (time, why) = read(&ours, &stop, Limits::default());
        assert_eq!(why, ErrorKind::ConnectionAborted);
        assert!(time < Duration::from_secs(2), "{time:?}");
        let mut patience = Patience::new(&ours, Limits::default(), &stop).unwrap();
        patience.answer();
        assert!(patience.write_all(b"what fits is still told").is_ok());
        let begun = Instant::now();
        let ended = patience.write_all(&vec![b'x'; 16 << 20]);
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
