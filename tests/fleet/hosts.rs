//! Hosts that send by one box or the other, and what they receive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Stdio};

use serde::Deserialize;

use crate::common::Running;
use crate::common::net::{Net, peer};

/// Boxes by which data and answers of connections pass: connection n takes those at n modulo the length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths {
    data: &'static [usize],
    answers: &'static [usize],
}

/// Every other answer by the other box.
pub(crate) const HALF_OF_ANSWERS: Paths = Paths {
    data: &[0],
    answers: &[0, 1],
};
/// Every pair of paths for a quarter of the connections.
pub(crate) const QUARTERS: Paths = Paths {
    data: &[0, 1],
    answers: &[0, 0, 1, 1],
};
/// Data of all by the second box, and no answers.
pub(crate) const SURVIVOR: Paths = Paths {
    data: &[1],
    answers: &[],
};
/// All by the first box.
pub(crate) const ONE_BOX: Paths = Paths {
    data: &[0],
    answers: &[0],
};

impl Paths {
    /// Box that the data of a connection pass.
    pub(crate) fn data_of(self, connection: u32) -> usize {
        self.data[connection as usize % self.data.len()]
    }
}

/// Queue pairs of sender and receiver of a connection, as in `tests/peer/fleet_hosts.py`: distinct, as the factors are odd.
pub(crate) const fn numbers(connection: u32) -> (u32, u32) {
    const MASK: u32 = 0xff_ffff;
    (
        connection.wrapping_mul(7_919).wrapping_add(0x10_0000) & MASK,
        connection.wrapping_mul(104_729).wrapping_add(0x80_0000) & MASK,
    )
}

/// Length in bytes of a data frame, without FCS.
pub(crate) const FRAME: u64 = 14 + 20 + 8 + 12 + 16 + 256 + 4;

/// Frames at the hosts' ends of a box's links.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    /// Data frames that went to the box.
    pub(crate) sent: u64,
    /// Data frames that came out of the box.
    pub(crate) received: u64,
    /// CNPs by queue pair, and the time of the first in s since the start.
    pub(crate) cnps: BTreeMap<u32, (u64, f64)>,
    /// CNPs that came before the phase and after the last one.
    pub(crate) between: BTreeMap<u32, (u64, f64)>,
}

/// Hosts that send.
pub(crate) struct Hosts {
    connections: u32,
    /// Paths of the last phase that ended.
    last: Option<Paths>,
    seen: BufReader<ChildStdout>,
    child: Running,
}

impl Hosts {
    /// Starts hosts that send by these paths, each for a time in s.
    pub(crate) fn start(net: &Net, connections: u32, phases: &[(Paths, f64)]) -> Hosts {
        let phase = |(paths, seconds): &(Paths, f64)| {
            let [data, answers] = [paths.data, paths.answers].map(|boxes| {
                let names: Vec<String> = boxes.iter().map(ToString::to_string).collect();
                if names.is_empty() {
                    "-".to_owned()
                } else {
                    names.join(",")
                }
            });
            format!("--phase={seconds}:{data}:{answers}")
        };
        let mut child = peer(&net.space("hosts"), "fleet_hosts.py")
            .args(["--connections", &connections.to_string()])
            .args(phases.iter().map(phase))
            .args(["hdc1", "hwan1", "hdc2", "hwan2"].map(|end| net.link(end)))
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Hosts {
            connections,
            last: None,
            seen: BufReader::new(child.stdout.take().unwrap()),
            child: Running::of(child),
        }
    }

    /// Waits for the end of a phase; returns what was seen. Every CNP since the last phase must go to a sender whose data pass the box. The
    /// hosts go on.
    pub(crate) fn phase(&mut self, paths: Paths) -> [Seen; 2] {
        let seen = self.see();
        for (at, seen) in seen.iter().enumerate() {
            self.check(at, paths, seen.cnps.keys());
            self.check(at, self.last.unwrap_or(paths), seen.between.keys());
        }
        self.last = Some(paths);
        seen
    }

    /// Waits for the end of a phase; returns what was seen. The hosts go on.
    pub(crate) fn see(&mut self) -> [Seen; 2] {
        let mut line = String::new();
        self.seen.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Asserts that each queue pair is that of a sender whose data pass the box.
    fn check<'a>(&self, at: usize, paths: Paths, signalled: impl Iterator<Item = &'a u32>) {
        let through = (0..self.connections).filter(|n| paths.data_of(*n) == at);
        let senders: BTreeSet<u32> = through.map(|n| numbers(n).0).collect();
        for qpn in signalled {
            assert!(
                senders.contains(qpn),
                "box {at} signalled {qpn:#x}, which does not send through it"
            );
        }
    }

    /// Begins the next phase.
    pub(crate) fn next(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}
