//! Captures: reads and writes pcap files, and splits one by direction for two `net_pcap` ports.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use anyhow::{Context, Result};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};

/// A frame and its time in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Time since the epoch in ns.
    pub time: u64,
    /// The frame, without FCS.
    pub frame: Vec<u8>,
}

/// Reads all frames of a capture.
///
/// # Errors
/// When the file cannot be read or is no pcap file.
pub fn read(path: &Path) -> Result<Vec<Captured>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut reader = PcapReader::new(BufReader::new(file))
        .with_context(|| format!("{} is no pcap", path.display()))?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.with_context(|| {
            format!(
                "{} is damaged after {} frames",
                path.display(),
                frames.len()
            )
        })?;
        let time = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
        frames.push(Captured {
            time,
            frame: packet.data.into_owned(),
        });
    }
    Ok(frames)
}

/// Writes frames as a capture, `repeat` times over.
///
/// # Errors
/// When the file cannot be written.
pub fn write<'a>(
    path: &Path,
    frames: impl Iterator<Item = &'a Captured> + Clone,
    repeat: usize,
) -> Result<usize> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut writer = PcapWriter::new(BufWriter::new(file))?;
    let mut written = 0;
    for _ in 0..repeat {
        for captured in frames.clone() {
            let time = std::time::Duration::from_nanos(captured.time);
            let len = u32::try_from(captured.frame.len()).context("frame too long")?;
            writer.write_packet(&PcapPacket::new(time, len, &captured.frame))?;
            written += 1;
        }
    }
    Ok(written)
}

/// Splits a capture by source MAC address: frames from `mac` to `from`, all others to `others`; each `repeat` times over.
/// Returns the number of frames in each.
///
/// # Errors
/// When a file cannot be read or written.
pub fn split(
    capture: &Path,
    mac: [u8; 6],
    repeat: usize,
    from: &Path,
    others: &Path,
) -> Result<(usize, usize)> {
    let frames = read(capture)?;
    let is_from = |captured: &&Captured| captured.frame.get(6..12) == Some(&mac[..]);
    let first = write(from, frames.iter().filter(is_from), repeat)?;
    let second = write(
        others,
        frames.iter().filter(|captured| !is_from(captured)),
        repeat,
    )?;
    Ok((first, second))
}

/// Parses a MAC address such as `02:00:00:00:01:03` into octets.
///
/// # Errors
/// When the text is no MAC address.
pub fn mac(text: &str) -> Result<[u8; 6]> {
    let octets: Result<Vec<u8>, _> = text
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16))
        .collect();
    let octets =
        octets.with_context(|| format!("{text:?} is no MAC address, such as 02:00:00:00:01:03"))?;
    <[u8; 6]>::try_from(octets.as_slice()).with_context(|| format!("{text:?} is no MAC address"))
}
