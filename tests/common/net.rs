//! Network namespaces and links with names of this process, gone when the test is.

use std::process::{Command, Stdio};

/// See the module's text.
pub struct Net {
    id: u32,
    spaces: &'static [&'static str],
    links: &'static [&'static str],
}

impl Net {
    /// For hosts in these namespaces, and links of which these ends are in none. The namespaces are made.
    pub fn of(spaces: &'static [&'static str], links: &'static [&'static str]) -> Net {
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

    /// The namespace of a host.
    pub fn space(&self, host: &str) -> String {
        format!("npcc-{host}-{}", self.id)
    }

    /// An end of a link.
    pub fn link(&self, end: &str) -> String {
        format!("p{end}{}", self.id)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let spaces = self.spaces.iter().map(|space| ("netns", self.space(space)));
        let links = self.links.iter().map(|end| ("link", self.link(end)));
        // A link goes with the namespace of an end. What was never made is no loss.
        for (kind, name) in spaces.chain(links) {
            let _ = Command::new("ip")
                .args([kind, "del", &name])
                .stderr(Stdio::null())
                .status();
        }
    }
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
