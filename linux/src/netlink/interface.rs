//! Kernel's interface under a port of packet sockets, whose driver reports a link whatever the interface does.
//!
//! Its carrier, and its end, come from the kernel's link messages. The packet socket ends with the interface, also when that moves to another
//! network namespace; another interface with the same name or index is not the port's.
//!
//! Law: a link that went down is reported down at least once, however soon it came back. An interface that is gone stays gone.

use std::io;

use super::requests::Requests;
use super::stream::{Read, Stream};
use crate::wire::event::{Event, event};
use crate::wire::message::{Message, messages};
use crate::wire::request::link;

/// Datagrams taken in one look.
const MOST: usize = 256;

/// State of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The interface is administratively up and has a carrier.
    Up,
    /// The interface is down, or has no carrier.
    Down,
    /// The interface was deleted, or moved to another network namespace.
    Gone,
}

/// Interface of the kernel that is followed.
#[derive(Debug)]
pub struct Interface {
    index: u32,
    stream: Stream,
    requests: Requests,
    state: State,
}

impl Interface {
    /// Follows the interface with this index, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The sockets cannot be created, or the kernel does not answer.
    pub fn follow(index: u32) -> io::Result<Interface> {
        let mut interface = Interface {
            index,
            stream: Stream::of_links()?,
            requests: Requests::open()?,
            state: State::Down,
        };
        interface.query()?;
        Ok(interface)
    }

    /// Takes in the kernel's messages, and returns the state: `Down` if the interface was down at any time since the last call.
    pub fn state(&mut self) -> State {
        let (index, mut state, mut fell) = (self.index, self.state, false);
        let read = self.stream.read(MOST, |datagram| {
            for message in messages(datagram) {
                state = after(state, index, &message);
                fell |= state == State::Down;
            }
        });
        self.state = state;
        if !matches!(read, Ok(Read::Empty | Read::More)) {
            // Messages were lost. An answer that fails leaves the state as it is: the next look tries again, as the socket reports it again.
            let _ = self.query();
        }
        match self.state {
            State::Up if fell => State::Down,
            state => state,
        }
    }

    /// Reads the state from the kernel.
    fn query(&mut self) -> io::Result<()> {
        let (index, mut state) = (self.index, self.state);
        let answer = self.requests.ask_for(link(index), |message| {
            state = after(state, index, message);
        });
        match answer {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => state = State::Gone,
            answer => answer?,
        }
        self.state = state;
        Ok(())
    }
}

/// Returns the state after a message.
fn after(before: State, index: u32, message: &Message<'_>) -> State {
    match event(message) {
        _ if before == State::Gone => before,
        Ok(Event::Link(link)) if link.index == index => {
            if link.up && link.carrier {
                State::Up
            } else {
                State::Down
            }
        }
        Ok(Event::LinkGone(gone)) if gone == index => State::Gone,
        _ => before,
    }
}
