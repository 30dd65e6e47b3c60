//! Record of what left the switch, by which two runs are compared.

use std::fmt::Write as _;

/// Frames that left, and counts of what happened on the wires.
#[derive(Debug, Default)]
pub struct Trace {
    /// A line a frame: time, port, length, digest.
    lines: String,
    /// True if lines are kept.
    pub keeps: bool,
    pub frames: u64,
    /// Digest of all lines.
    pub digest: u64,
    /// Frames that hosts sent, that hosts got, and that links lost.
    pub offered: u64,
    pub delivered: u64,
    pub lost: u64,
}

impl Trace {
    pub fn frame(&mut self, at: u64, port: usize, bytes: &[u8]) {
        let line = format!("{at} {port} {} {:016x}", bytes.len(), digest(bytes));
        self.frames += 1;
        self.note(&line);
    }

    /// Adds a line.
    pub fn note(&mut self, line: &str) {
        self.digest = digest(line.as_bytes()) ^ self.digest.rotate_left(7);
        if self.keeps {
            let _ = writeln!(self.lines, "{line}");
        }
    }

    /// All lines.
    pub fn text(&self) -> &str {
        &self.lines
    }
}

/// FNV-1a of some bytes.
pub fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
