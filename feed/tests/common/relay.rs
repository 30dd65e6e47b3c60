//! Relay of the route between two nats-servers, which can be cut.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[derive(Debug, Default)]
struct State {
    cut: bool,
    streams: Vec<TcpStream>,
    /// Time of the first connection since the relay was last cut.
    connected: Option<Instant>,
}

/// Relay to a port of loopback. Its threads go on until the test's process ends.
#[derive(Debug)]
pub struct Relay {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Relay {
    pub fn start(to: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay {
            port: listener.local_addr().unwrap().port(),
            state: Arc::default(),
        };
        let state = Arc::clone(&relay.state);
        std::thread::spawn(move || {
            for from in listener.incoming() {
                let Ok(to) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                connect(from.unwrap(), to, &mut state.lock().unwrap());
            }
        });
        relay
    }

    /// Ends all connections and takes no new ones.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        (state.cut, state.connected) = (true, None);
    }

    /// Takes connections again.
    pub fn heal(&self) {
        self.state.lock().unwrap().cut = false;
    }

    /// Returns the time of the first connection since the last cut.
    pub fn connected(&self) -> Option<Instant> {
        self.state.lock().unwrap().connected
    }
}

/// Passes octets both ways until either end is gone.
fn connect(one: TcpStream, other: TcpStream, state: &mut State) {
    if state.cut {
        return;
    }
    state.connected.get_or_insert_with(Instant::now);
    let copy = |stream: &TcpStream| stream.try_clone().unwrap();
    for (mut from, mut to) in [(copy(&one), copy(&other)), (copy(&other), copy(&one))] {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    state.streams.extend([one, other]);
}
