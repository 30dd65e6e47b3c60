//! Switches whose ports are cards played by the plug-in of `dpdk-sys/double`, each with a veth pair as its wire.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use npcc_card::Profile;
use npcc_testkit::wait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::net::{Net, peer, run};
use super::switch::Switch;
use super::{Lab, assert_success};

/// Card of a port.
#[derive(Debug, Clone)]
pub struct Card {
    pub profile: Profile,
    /// Rows of which the second answer counts.
    other: Vec<&'static str>,
    /// Value of `ports[].pfc`.
    pub pfc: &'static str,
}

impl Card {
    /// Returns a card of this profile with the first of two answers wherever the source leaves two.
    pub fn of(profile: &str, pfc: &'static str) -> Card {
        Card {
            profile: Profile::named(profile).unwrap(),
            other: Vec::new(),
            pfc,
        }
    }

    /// Returns a card with the second of two answers wherever the source leaves two.
    pub fn other(profile: &str, pfc: &'static str) -> Card {
        let card = Card::of(profile, pfc);
        let other = card.profile.open();
        Card {
            profile: card.profile.with_other(&other),
            other,
            pfc,
        }
    }

    /// Speed of the link in Gb/s.
    fn speed(&self) -> u32 {
        match self.profile.name {
            "e1000e" | "igb" => 1,
            "ixgbe" | "ixgbe_vf" | "virtio" | "vmxnet3" => 10,
            "i40e" => 40,
            _ => 100,
        }
    }

    /// Quanta of a pause of 2 ms; the longest pause at 100 Gb/s is shorter.
    fn quanta(&self) -> u16 {
        let quanta = u64::from(self.speed()) * 2_000_000 / 512;
        u16::try_from(quanta).unwrap_or(u16::MAX)
    }

    /// Largest MTU of the table's that the tests use.
    pub fn mtu(&self) -> u16 {
        (*self.profile.max_mtu.get()).min(9_100)
    }
}

/// Frames that hosts send each way.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    pub frames: u32,
    /// Frames of a way that are under way at most.
    pub window: u32,
    pub dscp: u8,
    /// Seconds from pause to pause of the ports for 2 ms; `None`: the hosts send none.
    pub pause: Option<f64>,
}

impl Traffic {
    /// Returns so many frames without a class, unpaused.
    pub fn of(frames: u32) -> Traffic {
        Traffic {
            frames,
            window: 192,
            dscp: 0,
            pause: None,
        }
    }
}

/// Cards in the switch's namespace; port `n` is `p<n>`, on the end `c<n>` of a link whose other end, `h<n>`, is a host's.
pub struct Cards {
    pub lab: Lab,
    pub net: Net,
    pub cards: Vec<Card>,
}

/// Returns the path of the plug-in.
pub fn plugin() -> PathBuf {
    let path = std::env::var_os("NPCC_DOUBLE").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_npcc-switch")).with_file_name("libnpcc_double.so"),
        PathBuf::from,
    );
    let built = std::fs::read(&path).unwrap_or_default();
    // Without DPDK's driver headers the library is built, but without its bus.
    let has_bus = built.windows(10).any(|text| text == b"bus.double");
    assert!(
        has_bus,
        "{} plays no cards: scripts/cards builds it",
        path.display()
    );
    copied(path)
}

/// Returns a copy of the plug-in in /run where a folder above it is writable for all, as below /tmp: DPDK loads none from there.
fn copied(path: PathBuf) -> PathBuf {
    let is_open = |folder: &Path| {
        let of = std::fs::metadata(folder);
        of.is_ok_and(|of| of.permissions().mode() & 0o002 != 0)
    };
    if !path.ancestors().skip(1).any(is_open) {
        return path;
    }
    let folder = Path::new("/run/npcc-cards");
    let own = folder.join(std::process::id().to_string());
    let copy = folder.join("libnpcc_double.so");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::copy(&path, &own).unwrap();
    std::fs::rename(&own, &copy).unwrap();
    copy
}

impl Cards {
    /// Creates links for these cards, and the configuration of a switch with two workers and a lossless priority on them.
    pub fn new(cards: &[Card]) -> Cards {
        let net = Net::of(&["sw"], &[]);
        let space = net.space("sw");
        run(&format!(
            "ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
        ));
        for (n, card) in cards.iter().enumerate() {
            // The interface of a card that the kernel keeps has the MTU that the driver gives it.
            let mtu = if *card.profile.kernel_interface.get() {
                1_500
            } else {
                9_216
            };
            run(&format!(
                "ip -n {space} link add c{n} mtu {mtu} type veth peer name h{n} mtu 9216"
            ));
            run(&format!("ip -n {space} link set c{n} up"));
            run(&format!("ip -n {space} link set h{n} up"));
        }
        let cards = Cards {
            lab: Lab::inside(space),
            net,
            cards: cards.to_vec(),
        };
        cards.lab.config(&cards.text());
        cards
    }

    /// Returns the configuration.
    pub fn text(&self) -> String {
        let mut text = format!(
            "version: 1
dpdk: {{ eal_args: [--in-memory, --no-pci, -d, {}], link_wait: 5s }}
cores: {{ control: 0, workers: [1, 0] }}
npcc: {{ tick: 2ms, recovery: 4ms }}
buffer: {{ pool: 96MB, lossless_min_frame: 4096 }}
qos: {{ priorities: {{ 3: {{ ecn: {{ kmin: 100KB, kmax: 200KB }} }} }} }}
ports:
",
            plugin().display()
        );
        for (n, card) in self.cards.iter().enumerate() {
            let report = self.lab.path(&format!("card{n}"));
            text += &format!(
                "  - {{ name: p{n}, device: 'd0b1:00:{n:02x}.0,profile={},iface=c{n},speed={},report={}{}', mac: '{}', mtu: {}, pfc: {}, addresses: [10.0.{n}.1/24] }}\n",
                card.profile.name,
                card.speed(),
                report.display(),
                card.other.iter().fold(String::new(), |all, row| {
                    let before = if all.is_empty() { ",other=" } else { "+" };
                    all + before + row
                }),
                gateway(n),
                card.mtu(),
                card.pfc,
            );
        }
        text += "neighbors:\n";
        for n in 0..self.cards.len() {
            text += &format!(
                "  - {{ address: 10.0.{n}.3, port: p{n}, mac: '{}' }}\n",
                host(n)
            );
        }
        text
    }

    /// Changes the configuration; fails if that changes nothing.
    pub fn change(&self, from: &str, to: &str) {
        let path = self.lab.path("switch.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    /// Lets time pass `scale` times slower, in the switch and in the cards.
    pub fn slow(&self, scale: u32) {
        self.change("version: 1", &format!("version: 1\ntime_scale: {scale}"));
        self.change(",iface=", &format!(",time_scale={scale},iface="));
    }

    /// Starts a switch on the cards.
    pub fn start(&self) -> Switch {
        // A configuration that is refused says so here, and not by a switch that never answers.
        let check = self.lab.command(&["check", "-c", "switch.yaml"]).output();
        assert_success(&check.unwrap());
        let mut switch = Switch::starting(self.lab.clone(), &[]);
        let answers = |switch: &mut Switch| {
            let ended = switch.child.try_wait().unwrap();
            assert_eq!(ended, None, "it ended: {}", switch.log());
            switch
                .ask(&["show", "ports"])
                .status
                .success()
                .then_some(())
        };
        wait::value(
            wait::LONG,
            || "an answer".to_owned(),
            || answers(&mut switch),
        );
        switch.forwards();
        switch
    }

    /// Returns what the card of a port counted.
    pub fn report(&self, port: usize) -> BTreeMap<String, u64> {
        let text = std::fs::read_to_string(self.lab.path(&format!("card{port}"))).unwrap();
        let row = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        text.lines().map_while(row).collect()
    }

    /// Sends traffic each way between the ports of each pair. Returns the ways' results, those of pair `n` at `2n` and `2n + 1`.
    pub fn exchange(&self, pairs: &[(usize, usize)], traffic: Traffic) -> Vec<Way> {
        let ways: Vec<Value> = pairs
            .iter()
            .flat_map(|&(one, other)| [(one, other), (other, one)])
            .map(|(from, to)| {
                let mtu = self.cards[from].mtu().min(self.cards[to].mtu());
                let sizes: Vec<u16> = [46, 46, 114, 1_010, 4_200, mtu]
                    .into_iter()
                    .filter(|size| *size <= mtu)
                    .collect();
                json!({
                    "into": format!("h{from}"), "out": format!("h{to}"),
                    "gateway": gateway(from), "source": host(from),
                    "from": format!("10.0.{from}.3"), "to": format!("10.0.{to}.3"),
                    "sizes": sizes, "quanta": self.cards[to].quanta(),
                })
            })
            .collect();
        let orders = json!({
            "ways": ways, "frames": traffic.frames, "window": traffic.window, "dscp": traffic.dscp, "patience": 20,
            "pause": traffic.pause,
        });
        let mut child = peer(&self.net.space("sw"), "card_hosts.py")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(orders.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_success(&output);
        let hosts: Hosts = serde_json::from_slice(&output.stdout).unwrap();
        hosts.ways
    }
}

/// Results of `tests/peer/card_hosts.py`.
#[derive(Debug, Deserialize)]
struct Hosts {
    ways: Vec<Way>,
}

/// Frames that passed one way.
#[derive(Debug, Deserialize)]
pub struct Way {
    pub came: u32,
    pub disorder: u32,
    pub damaged: u32,
    /// Pauses that the receiver sent to the switch, and got from it.
    pub pauses: u32,
    pub heard: u32,
}

fn gateway(port: usize) -> String {
    format!("02:00:00:00:01:{port:02x}")
}

fn host(port: usize) -> String {
    format!("02:00:00:00:02:{port:02x}")
}
