//! Servers and feeds of a pair of boxes.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use super::liar::Liar;
use super::relay::LossyRelay;
use crate::common::Running;
use crate::common::net::run;
use crate::common::switch::Switch;

/// Both servers and both feeds, under the process that starts them on loopback from the shipped configuration.
pub(crate) struct Feeds {
    trial: Running,
    /// Feeds in place of the trial's, and the relays that are their servers.
    behind_relays: Option<([Running; 2], [LossyRelay; 2])>,
}

/// Returns a command of npcc-feed whose output goes to a file.
fn feed(output: File) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_npcc-switch")).with_file_name("npcc-feed");
    let made_by = format!("{} is missing: cargo build -p npcc-feed", program.display());
    assert!(program.exists(), "{made_by}");
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stderr(output);
    command
}

/// Files of the feeds' settings.
const SETTINGS: [&str; 2] = ["edge-1.yaml", "edge-2.yaml"];

/// Returns the settings that the trial wrote for its feeds.
fn settings(boxes: &[Switch; 2]) -> [String; 2] {
    let table = fs::read_to_string(boxes[0].path("fleet")).unwrap();
    let is_folder = |word: &&str| word.contains("npcc-feed-trial");
    let folder = Path::new(table.split_whitespace().find(is_folder).unwrap());
    SETTINGS.map(|name| fs::read_to_string(folder.join(name)).unwrap())
}

/// Returns the addresses of both servers in the settings of a feed.
fn servers(settings: &str) -> [&str; 2] {
    let words = settings.split(['[', ']', ',', ' ']);
    let servers = words.filter(|word| word.starts_with("nats://"));
    servers.collect::<Vec<_>>().try_into().unwrap()
}

impl Feeds {
    /// Starts servers and feeds; the fleet's table goes to the file `fleet` of the first box, and messages to `feeds`.
    pub(crate) fn start(boxes: &[Switch; 2]) -> Feeds {
        let file = |name: &str| File::create(boxes[0].path(name)).unwrap();
        let mut command = feed(file("feeds"));
        command
            .arg("trial")
            .arg("--first")
            .arg(boxes[0].path("switch.sock"))
            .arg("--second")
            .arg(boxes[1].path("switch.sock"))
            .stdout(file("fleet"));
        Feeds {
            trial: Running::of(command.spawn().unwrap()),
            behind_relays: None,
        }
    }

    /// Processes under the trial: the two servers, then the two feeds.
    pub(crate) fn processes(&self) -> [u32; 4] {
        let id = self.trial.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let ids = children.split_whitespace().map(|id| id.parse().unwrap());
        let ids: Vec<u32> = ids.collect();
        ids.try_into().unwrap()
    }

    /// Ends the trial's feeds and starts others, which lose this percentage of the messages about ends that their servers send them.
    pub(crate) fn lose(&mut self, boxes: &[Switch; 2], percent: u64) {
        let [_, _, feeds @ ..] = self.processes();
        for feed in feeds {
            run(&format!("kill -TERM {feed}"));
        }
        let texts = settings(boxes);
        let servers = servers(&texts[0]);
        let relays = servers.map(|server| LossyRelay::start(server, percent));
        let start = |at: usize| {
            let own = boxes[0].path(SETTINGS[at]);
            let [one, other] = servers;
            let text = texts[at].replace(one, &relays[0].address);
            fs::write(&own, text.replace(other, &relays[1].address)).unwrap();
            let output = File::create(own.with_extension("log")).unwrap();
            Running::of(feed(output).arg("run").arg("-c").arg(own).spawn().unwrap())
        };
        self.behind_relays = Some(([start(0), start(1)], relays));
    }

    /// Ends the first box's feed; returns a connection to its server as that feed's user.
    pub(crate) fn impersonate_first(&self, boxes: &[Switch; 2]) -> Liar {
        let [_, _, feed, _] = self.processes();
        run(&format!("kill -TERM {feed}"));
        Liar::connect(servers(&settings(boxes)[0])[0], "edge-1", "change-me-1")
    }

    /// Messages about ends that servers sent to feeds behind relays, and those of them that were lost.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let relays = self.behind_relays.iter().flat_map(|(_, relays)| relays);
        relays.fold((0, 0), |(sent, lost), relay| {
            let counts = &relay.counts;
            (
                sent + counts.sent.load(Ordering::Relaxed),
                lost + counts.lost.load(Ordering::Relaxed),
            )
        })
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        // It ends its processes on SIGTERM only.
        let Some(child) = self.trial.0.as_mut() else {
            return;
        };
        let id = i32::try_from(child.id()).unwrap();
        run(&format!("kill -TERM {id}"));
        let _ = child.wait();
    }
}
