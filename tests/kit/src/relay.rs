//! Relay of TCP connections, which can be cut and may change what the server says.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    streams: Vec<TcpStream>,
    /// Time of the first connection since the relay was last cut.
    connected: Option<Instant>,
}

/// Relay from a port of loopback to a server. Its threads go on until the test's process ends.
#[derive(Debug)]
pub struct Relay {
    /// Port of loopback that it listens on.
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// Starts a relay that passes all octets.
    ///
    /// # Errors
    /// The system gives no port.
    pub fn start(server: SocketAddr) -> io::Result<Relay> {
        Relay::with(server, |_, mut server, mut client| {
            io::copy(&mut server, &mut client).map(drop)
        })
    }

    /// Starts a relay whose function passes what the server says to the client; it also receives the number of the connection, from 1.
    ///
    /// # Errors
    /// The system gives no port.
    pub fn with(
        server: SocketAddr,
        pass: impl Fn(u64, TcpStream, TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Relay {
            port: listener.local_addr()?.port(),
            state: Arc::default(),
        };
        let (state, pass) = (Arc::clone(&relay.state), Arc::new(pass));
        thread::spawn(move || {
            for (client, number) in listener.incoming().zip(1..) {
                // A server that was killed refuses, and so does the relay.
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) {
                    let pass = Arc::clone(&pass);
                    let answers = move |server, client| pass(number, server, client);
                    // A connection that ends meanwhile is none.
                    let _ = connect(&client, &server, answers, &mut locked(&state));
                }
            }
        });
        Ok(relay)
    }

    /// Ends all connections and takes no new ones.
    pub fn cut(&self) {
        let mut state = locked(&self.state);
        for stream in state.streams.drain(..) {
            // It may have ended.
            let _ = stream.shutdown(Shutdown::Both);
        }
        (state.is_cut, state.connected) = (true, None);
    }

    /// Takes connections again.
    pub fn heal(&self) {
        locked(&self.state).is_cut = false;
    }

    /// Returns the time of the first connection since the last cut.
    pub fn connected(&self) -> Option<Instant> {
        locked(&self.state).connected
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes octets both ways until either end is gone.
fn connect(
    client: &TcpStream,
    server: &TcpStream,
    answers: impl FnOnce(TcpStream, TcpStream) -> io::Result<()> + Send + 'static,
    state: &mut State,
) -> io::Result<()> {
    if state.is_cut {
        return Ok(());
    }
    let both = || Ok::<_, io::Error>((client.try_clone()?, server.try_clone()?));
    let requests =
        |server: TcpStream, client: TcpStream| io::copy(&mut &client, &mut &server).map(drop);
    spawn(both()?, requests)?;
    spawn(both()?, answers)?;
    state.connected.get_or_insert_with(Instant::now);
    let (client, server) = both()?;
    state.streams.extend([client, server]);
    Ok(())
}

/// Passes octets of one direction in a thread; when they end, both streams do.
fn spawn(
    (client, server): (TcpStream, TcpStream),
    pass: impl FnOnce(TcpStream, TcpStream) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let ends = [client.try_clone()?, server.try_clone()?];
    thread::spawn(move || {
        // Either end may go away at any time.
        let _ = pass(server, client);
        for end in ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::wait::{LONG, until};

    /// Server that sends back what it receives.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || io::copy(&mut &client, &mut &client));
            }
        });
        address
    }

    fn said_back(relay: &Relay) -> io::Result<[u8; 2]> {
        let mut client = TcpStream::connect(("127.0.0.1", relay.port))?;
        client.write_all(b"hi")?;
        let mut back = [0; 2];
        client.read_exact(&mut back).map(|()| back)
    }

    #[test]
    fn octets_pass_both_ways_unless_the_relay_is_cut() {
        let relay = Relay::start(echo()).unwrap();
        assert_eq!(said_back(&relay).unwrap(), *b"hi");
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        until("the connection", LONG, || relay.connected().is_some());
        relay.cut();
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
        assert!(said_back(&relay).is_err() && relay.connected().is_none());
        relay.heal();
        assert_eq!(said_back(&relay).unwrap(), *b"hi");
    }

    #[test]
    fn what_a_server_says_can_be_changed() {
        let shout = |number: u64, mut server: TcpStream, mut client: TcpStream| {
            let mut octets = [0; 2];
            server.read_exact(&mut octets)?;
            client.write_all(&[
                octets[0].to_ascii_uppercase(),
                b'0' + number.to_le_bytes()[0],
            ])
        };
        let relay = Relay::with(echo(), shout).unwrap();
        assert_eq!(said_back(&relay).unwrap(), *b"H1");
        assert_eq!(said_back(&relay).unwrap(), *b"H2");
    }
}
