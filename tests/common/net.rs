//! Network namespaces and links with names of this process, removed when the test ends.

use std::process::{Command, Stdio};

/// Stops a test that makes namespaces where it may not.
fn assert_root() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test makes network namespaces: run scripts/test as root, or scripts/check, which needs no root"
    );
}

/// Network namespaces and links of a test; removed on drop.
pub struct Net {
    id: u32,
    spaces: &'static [&'static str],
    links: &'static [&'static str],
}

impl Net {
    /// Creates the namespaces of these hosts; `links` are the ends of links that are in none.
    pub fn of(spaces: &'static [&'static str], links: &'static [&'static str]) -> Net {
        assert_root();
        let net = Net {
            id: std::process::id(),
            spaces,
            links,
        };
        for space in spaces {
            run(&format!("ip netns add {}", net.space(space)));
        }
        net
    }

    /// Returns the name of a host's namespace.
    pub fn space(&self, host: &str) -> String {
        format!("npcc-{host}-{}", self.id)
    }

    /// Returns the device arguments of a packet socket on an end of a link, whose ring takes frames of 9,200 octets.
    pub fn jumbo_device(&self, index: u8, end: &str) -> String {
        let link = self.link(end);
        format!("net_af_packet{index},iface={link},blocksz=73728,framesz=9216,framecnt=512")
    }

    /// Returns the interface name of an end of a link.
    pub fn link(&self, end: &str) -> String {
        format!("p{end}{}", self.id)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let spaces = self.spaces.iter().map(|space| ("netns", self.space(space)));
        let links = self.links.iter().map(|end| ("link", self.link(end)));
        // A link is deleted with the namespace of either end. Failures do not matter: some may never have been made.
        for (kind, name) in spaces.chain(links) {
            let _ = Command::new("ip")
                .args([kind, "del", &name])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// A network namespace for a switch with Linux integrated; the switch creates it.
pub struct Space(pub String);

impl Space {
    /// Names the namespace after this test and this process.
    pub fn of(test: &str) -> Space {
        assert_root();
        Space(format!("npcc-{test}-{}", std::process::id()))
    }

    /// Runs a command in the namespace and returns its output.
    pub fn says(&self, command: &str) -> String {
        let words = command.split_whitespace();
        let output = Command::new("ip")
            .args(["netns", "exec", &self.0])
            .args(words)
            .output();
        let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.0])
            .stderr(Stdio::null())
            .status();
    }
}

/// Creates hosts of the kernel in the namespaces `dc` and `wan`, 10.0.1.x and 10.0.2.x, 2001:db8:1::x and 2001:db8:2::x, each with a link of
/// this MTU to the switch, which has no interface in Linux: its addresses are static neighbours of the hosts.
pub fn two_hosts(mtu: u32, hosts: [u8; 2]) -> Net {
    let net = Net::of(&["dc", "wan"], &["dc", "wan"]);
    for ((side, subnet), host) in [("dc", 1), ("wan", 2)].into_iter().zip(hosts) {
        let (space, inside, outside) = (
            net.space(side),
            net.link(&format!("h{side}")),
            net.link(side),
        );
        for command in [
            format!(
                "ip link add {outside} mtu 9200 type veth peer name {inside} mtu {mtu} address 02:00:00:00:0{subnet}:03 netns {space}"
            ),
            format!("ip link set {outside} up"),
            format!("ip -n {space} link set lo up"),
            format!("ip -n {space} link set {inside} up"),
            format!("ip -n {space} addr add 10.0.{subnet}.{host}/24 dev {inside}"),
            format!("ip -n {space} addr add 2001:db8:{subnet}::{host}/64 dev {inside} nodad"),
            format!(
                "ip -n {space} neigh add 10.0.{subnet}.1 lladdr 02:00:00:00:0{subnet}:01 dev {inside}"
            ),
            format!(
                "ip -n {space} neigh add 2001:db8:{subnet}::1 lladdr 02:00:00:00:0{subnet}:01 dev {inside}"
            ),
            format!("ip -n {space} route add default via 10.0.{subnet}.1"),
            format!("ip -n {space} -6 route add default via 2001:db8:{subnet}::1"),
        ] {
            run(&command);
        }
    }
    net
}

/// Creates hosts .3 of the kernel in the namespaces `dc` and `wan` as [`two_hosts`] does, but without neighbour entries for the switch.
pub fn strange_hosts() -> Net {
    let net = two_hosts(9000, [3, 3]);
    for side in ["dc", "wan"] {
        let (space, inside) = (net.space(side), net.link(&format!("h{side}")));
        run(&format!(
            "ip -n {space} neigh flush dev {inside} nud permanent"
        ));
    }
    net
}

/// Returns a command that runs this Python text in a namespace.
pub fn python(space: &str, text: &str) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", space, "/usr/bin/python3", "-c", text])
        .stdin(Stdio::null());
    command
}

/// Returns a command that runs a script of `tests/peer` in a namespace, with pipes.
pub fn peer(space: &str, script: &str) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", space, "/usr/bin/python3"])
        .arg(super::root().join("tests/peer").join(script))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command that must succeed.
pub fn run(command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(
        output.status.success(),
        "{command} (needs root): {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
