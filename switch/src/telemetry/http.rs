//! HTTP listener: one thread, one request per connection, and a limit to every wait.
//!
//! Law: a connection has [`Limits::whole`] from its first byte to its last, so no client holds anything for longer; past
//! [`Limits::connections`] the oldest connection is closed for a new one, so clients that hold on keep no others out. A request that
//! panics ends its connection.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::manage::waiting::Waiting;
use npcc_engine::fault;
use npcc_engine::threads::Heartbeat;

/// Time the listener waits before it checks whether the switch stops.
const SLICE: Duration = Duration::from_millis(50);

npcc_pipeline::defaults! {
    /// Limits of a client's resources.
    #[derive(Debug, Clone, Copy)]
    pub struct Limits {
        /// Number of connections at a time.
        pub connections: usize = 64,
        /// Lifetime of a connection, from its acceptance to its end.
        pub whole: Duration = Duration::from_secs(10),
        /// Time within that lifetime for the request's head.
        pub head: Duration = Duration::from_secs(5),
        /// Largest size of the request's head, in bytes.
        pub head_bytes: usize = 16 << 10,
        /// Largest number of headers of the request.
        pub headers: usize = 64,
    }
}

/// Error: the switch cannot listen on the address.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {address}: {source} (set telemetry.http to an address of this machine and a port that is free)"
)]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Listening socket, and the runtime that serves it.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    runtime: Runtime,
}

impl Listener {
    /// Listens on `address`; no request is answered before [`Listener::serve`].
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind(address: SocketAddr) -> Result<Listener, ListenError> {
        let listen = || {
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let runtime = Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()?;
            Ok(Listener { socket, runtime })
        };
        listen().map_err(|source| ListenError { address, source })
    }

    /// Answers until the switch stops, with a heartbeat at least every 50 ms.
    ///
    /// # Errors
    /// The system closes the socket.
    pub fn serve(
        self,
        router: &Router,
        limits: Limits,
        heartbeat: &Heartbeat,
    ) -> std::io::Result<()> {
        let Listener { socket, runtime } = self;
        runtime.block_on(accept(socket, router, limits, heartbeat))
    }
}

async fn accept(
    socket: TcpListener,
    router: &Router,
    limits: Limits,
    heartbeat: &Heartbeat,
) -> std::io::Result<()> {
    let socket = tokio::net::TcpListener::from_std(socket)?;
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    let mut waiting = Waiting::default();
    while heartbeat.goes_on() {
        fault::waits("http-stuck");
        let stream = match timeout(SLICE, socket.accept()).await {
            Err(_) => continue,
            Ok(Ok((stream, _))) => stream,
            // Too many descriptors, or a client that has gone already: both pass.
            Ok(Err(error)) => {
                waiting.note("telemetry.http", &error, Instant::now());
                sleep(SLICE).await;
                continue;
            }
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= limits.connections
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(tokio::spawn(serve_one(stream, router.clone(), limits)));
    }
    Ok(())
}

/// Serves one request on one connection.
async fn serve_one(stream: TcpStream, router: Router, limits: Limits) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .max_headers(limits.headers)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that disconnects half-way, or is too slow, gets no answer; nothing else depends on it.
    let _ = timeout(limits.whole, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    const SHORT: Limits = Limits {
        connections: 4,
        whole: Duration::from_millis(600),
        head: Duration::from_millis(300),
        head_bytes: 16 << 10,
        headers: 64,
    };

    /// HTTP server that ends with the test.
    struct Served {
        address: SocketAddr,
        stop: Arc<AtomicBool>,
        thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
    }

    impl Served {
        fn new() -> Served {
            Served::with(SHORT)
        }

        fn with(limits: Limits) -> Served {
            let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = listener.socket.local_addr().unwrap();
            let heartbeat = Heartbeat::default();
            let stop = Arc::clone(heartbeat.stop());
            let router = Router::new()
                .route("/", get(async || "here"))
                .route("/large", get(async || vec![b'x'; 32 << 20]))
                .route(
                    "/defect",
                    get(async || {
                        panic!("as if there were a defect");
                        #[expect(unreachable_code)]
                        ""
                    }),
                );
            let router = super::super::hosts::guarded(router, &["a".to_owned()]);
            let thread = std::thread::spawn(move || listener.serve(&router, limits, &heartbeat));
            Served {
                address,
                stop,
                thread: Some(thread),
            }
        }

        fn connect(&self) -> TcpStream {
            let stream = TcpStream::connect(self.address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(40)))
                .unwrap();
            stream
        }

        /// Returns the answer to these bytes, and the time it took.
        fn ask(&self, bytes: &[u8]) -> (String, Duration) {
            let begun = Instant::now();
            let mut stream = self.connect();
            // A client refused in the middle of its request gets the answer all the same.
            let _ = stream.write_all(bytes);
            (rest(&mut stream), begun.elapsed())
        }

        fn serves(&self) {
            let (answer, _) = self.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(
                answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"),
                "{answer}"
            );
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let ended = self.thread.take().unwrap().join();
            assert!(std::thread::panicking() || ended.unwrap().is_ok());
        }
    }

    /// Reads the rest of the stream; a connection that is reset has no more.
    fn rest(stream: &mut TcpStream) -> String {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn one_request_a_connection_is_answered() {
        let served = Served::new();
        let (answer, _) =
            served.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }

    /// Before host names were checked, a page from elsewhere could read everything by having its own name resolve to an address of ours.
    #[test]
    fn who_asks_by_a_name_of_elsewhere_is_refused_whatever_he_asks_for() {
        let served = Served::new();
        let ask = |path: &str, host: &str| {
            let requested = format!("GET {path} HTTP/1.1\r\n{host}\r\n");
            served.ask(requested.as_bytes()).0
        };
        let long = format!("Host: {}\r\n", "x".repeat(5_000));
        for path in ["/", "/absent"] {
            for host in ["Host: evil.example\r\n", "Host:\r\n", "", &long] {
                let answer = ask(path, host);
                assert!(answer.starts_with("HTTP/1.1 403"), "{path} {host} {answer}");
                assert!(!answer.ends_with("here"), "{answer}");
            }
        }
        let other = ask("http://evil.example/", "Host: a\r\n");
        assert!(other.starts_with("HTTP/1.1 403"), "{other}");
        let host = format!("Host: {}\r\n", served.address);
        assert!(ask("/", &host).ends_with("here"));
        assert!(ask("/absent", &host).starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn who_says_nothing_or_too_much_is_left_in_time() {
        let served = Served::new();
        let (answer, time) = served.ask(b"GET / HTTP/1.1\r\nHost:");
        assert!(!answer.contains(" 200 "), "{answer}");
        assert!(time >= SHORT.head, "{time:?}");
        let long = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "x".repeat(64 << 10)
        );
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(100));
        for head in [long, many] {
            assert!(served.ask(head.as_bytes()).0.starts_with("HTTP/1.1 431"));
        }
        assert!(
            served
                .ask(b"\x16\x03\x01 not HTTP \r\n\r\n")
                .0
                .starts_with("HTTP/1.1 400")
        );
        served.serves();
    }

    #[test]
    fn who_does_not_read_is_left_in_time() {
        let served = Served::new();
        let mut stream = served.connect();
        stream
            .write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        // The stimulus: it does not read for longer than it may.
        std::thread::sleep(2 * SHORT.whole);
        served.serves();
        assert!(rest(&mut stream).len() < 32 << 20, "it was cut off");
    }

    #[test]
    fn those_that_hold_on_make_room_for_those_that_come() {
        // They hold on for longer than the client waits for its answer.
        let hour = Duration::from_secs(3_600);
        let served = Served::with(Limits {
            whole: hour,
            head: hour,
            ..SHORT
        });
        let held: Vec<TcpStream> = (0..10 * SHORT.connections)
            .map(|_| served.connect())
            .collect();
        served.serves();
        drop(held);
    }

    #[test]
    fn a_request_that_panics_ends_its_connection_only() {
        let served = Served::new();
        assert_eq!(served.ask(b"GET /defect HTTP/1.1\r\nHost: a\r\n\r\n").0, "");
        served.serves();
    }

    #[test]
    fn an_address_that_is_taken_is_refused_with_the_key() {
        let served = Served::new();
        let refused = Listener::bind(served.address).unwrap_err().to_string();
        assert!(refused.contains("telemetry.http"), "{refused}");
    }
}
