//! Interfaces under packet sockets, as the kernel of this machine tells of them: a veth in a namespace of the test's own. Root is needed.

use std::io::Write as _;
use std::process::{Command, Stdio};

use npcc_linux::netlink::interface::{Interface, State};
use npcc_linux::tap::namespace;
use npcc_testkit::wait;

/// Veth `near` in a namespace, with `far` as its other end, both up.
struct Veth(String);

impl Veth {
    /// Creates the pair, and moves the calling thread into its namespace.
    fn new(test: &str) -> Veth {
        let veth = Veth(format!("npcc-{test}-{}", std::process::id()));
        namespace::enter(&veth.0).expect("root");
        veth.ip("link add near type veth peer name far");
        veth.ip("link set near up");
        veth.ip("link set far up");
        veth
    }

    fn ip(&self, arguments: &str) {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.0]).args(arguments.split_whitespace());
        let done = ip.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ip {arguments}: {said}");
    }

    /// Returns the index of `near`.
    fn near(&self) -> u32 {
        nix::net::if_::if_nametoindex("near").unwrap()
    }

    /// Follows `near`, which has a carrier.
    fn follow(&self) -> Interface {
        let mut near = Interface::follow(self.near()).unwrap();
        becomes(&mut near, State::Up);
        near
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = namespace::remove(&self.0);
    }
}

/// Waits until the interface is in a state: the kernel tells of a carrier by a thread of its own.
fn becomes(interface: &mut Interface, state: State) {
    let seen = || format!("the interface is {state:?}");
    wait::value(wait::LONG, seen, || {
        (interface.state() == state).then_some(())
    });
}

#[test]
fn a_carrier_that_the_other_end_takes_away_is_seen() {
    let veth = Veth::new("carrier");
    let mut near = veth.follow();
    for (command, state) in [
        ("link set far down", State::Down),
        ("link set far up", State::Up),
        ("link set near down", State::Down),
        ("link set near up", State::Up),
    ] {
        veth.ip(command);
        becomes(&mut near, state);
        assert_eq!(near.state(), state, "and stays so");
    }
}

/// Law: however soon a link came back, those that passed over it hear that it was down.
#[test]
fn an_interface_that_was_down_between_two_looks_is_down_in_one() {
    let veth = Veth::new("blink");
    let mut near = veth.follow();
    veth.ip("link set near down");
    veth.ip("link set near up");
    let mut again = Interface::follow(veth.near()).unwrap();
    becomes(&mut again, State::Up);
    assert_eq!(near.state(), State::Down);
    becomes(&mut near, State::Up);
}

/// The packet socket is bound to the interface that was there, and not to its name.
#[test]
fn an_interface_that_was_deleted_stays_gone_when_another_has_its_name_and_index() {
    let veth = Veth::new("deleted");
    let (mut near, index) = (veth.follow(), veth.near());
    veth.ip("link del near");
    assert_eq!(near.state(), State::Gone);
    veth.ip(&format!(
        "link add near index {index} type veth peer name far"
    ));
    veth.ip("link set near up");
    veth.ip("link set far up");
    let mut other = Interface::follow(index).unwrap();
    becomes(&mut other, State::Up);
    assert_eq!(near.state(), State::Gone);
}

#[test]
fn an_interface_that_moved_to_another_namespace_is_gone() {
    let veth = Veth::new("moved");
    let mut near = veth.follow();
    let other = format!("{}-2", veth.0);
    let ip = |arguments: &[&str]| {
        let done = Command::new("ip").args(arguments).status().unwrap();
        assert!(done.success(), "{arguments:?}");
    };
    ip(&["netns", "add", &other]);
    veth.ip(&format!("link set near netns {other}"));
    assert_eq!(near.state(), State::Gone);
    ip(&["netns", "del", &other]);
}

/// More messages than the socket holds are lost: the state is then read anew.
#[test]
fn after_lost_messages_the_state_is_that_of_the_kernel() {
    let veth = Veth::new("overrun");
    let mut near = veth.follow();
    let mut ip = Command::new("ip");
    ip.args(["-n", &veth.0, "-batch", "-"])
        .stdin(Stdio::piped());
    let mut ip = ip.spawn().unwrap();
    for n in 0..400 {
        let line = format!("link set far down mtu {0}\nlink set far up\n", 1_000 + n);
        ip.stdin
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
    assert!(ip.wait().unwrap().success());
    veth.ip("link del near");
    becomes(&mut near, State::Gone);
}
