//! `npcc-switch gen-pcap`: valid RoCEv2 captures for pktgen, TRex and tests.

use std::fs::File;
use std::io::BufWriter;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use npcc_config::units::BitRate;
use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::Mac;
use pcap_file::pcap::{PcapPacket, PcapWriter};

use super::{Failure, output, say};
use npcc_lab::traffic::{Operation, Traffic, Way};

/// Captures with more frames are refused: pktgen and TRex hold all of them in memory.
const MOST: u64 = 10_000_000;

#[derive(Debug, Args)]
pub(super) struct GenPcapArgs {
    /// Capture to write: the data and, without --reverse, what comes back too
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Write ACKs, CNPs and READ requests here instead
    #[arg(long, value_name = "FILE")]
    reverse: Option<PathBuf>,
    /// Connections, each with a queue pair at either end and the UDP source port Linux gives it
    #[arg(long, default_value_t = 64)]
    qps: usize,
    /// Operations in turn, each with its weight: write, send, read, ack, cnp
    #[arg(long, value_name = "NAME[=WEIGHT],...", default_value = "write")]
    ops: String,
    /// Lengths of data frames without FCS, in turn; imix is 7 of 78, 4 of 590 and 1 of 1514 bytes
    #[arg(long, value_name = "BYTES,...", default_value = "1082")]
    frames: String,
    /// Steps: each is one operation of one connection
    #[arg(long, default_value_t = 1024)]
    count: u64,
    /// First sender of the data
    #[arg(long, default_value = "10.0.1.3")]
    src: IpAddr,
    /// Senders, with addresses that follow each other: many for an incast
    #[arg(long, default_value_t = 1)]
    senders: u32,
    /// First receiver; IPv6 for IPv6 frames
    #[arg(long, default_value = "10.0.2.2")]
    dst: IpAddr,
    /// Receivers, with addresses that follow each other
    #[arg(long, default_value_t = 1)]
    receivers: u32,
    /// MAC of the frames' source
    #[arg(long, default_value = "02:00:00:00:01:03")]
    src_mac: Mac,
    /// MAC of the frames' destination: the switch's port
    #[arg(long, default_value = "02:00:00:00:01:01")]
    dst_mac: Mac,
    /// VLAN tag, 1 to 4094
    #[arg(long)]
    vlan: Option<u16>,
    /// DSCP of all but CNPs
    #[arg(long, default_value_t = 26)]
    dscp: u8,
    /// ECN field of all but CNPs: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE
    #[arg(long, default_value_t = 2)]
    ecn: u8,
    /// Wire rate the time stamps are of
    #[arg(long, default_value = "100G", value_parser = rate)]
    rate: BitRate,
    /// Same seed, same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error| format!("{error}"))?;
    match rate.0 {
        0 => Err("must be above 0".to_owned()),
        _ => Ok(rate),
    }
}

/// `write=8,ack=1` as eight writes and an ACK.
fn operations(text: &str) -> Result<Vec<Operation>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight = weight
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=1000).contains(n));
        match (Operation::named(name), weight) {
            (Some(operation), Some(weight)) => all.extend(std::iter::repeat_n(operation, weight)),
            (None, _) => {
                return Err(format!(
                    "error: `{name}` is no operation: write, send, read, ack or cnp"
                ));
            }
            (_, None) => return Err(format!("error: `{part}`: a weight is 1 to 1000")),
        }
    }
    Ok(all)
}

/// Frame lengths as written on a command line; `imix` is a mix of three.
pub(super) fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.parse() {
            Ok(size) => all.push(size),
            Err(_) if part == "imix" => all.extend(IMIX),
            Err(_) => {
                return Err(format!(
                    "error: `{part}` is no frame length: write bytes without FCS such as 1082, or imix"
                ));
            }
        }
    }
    Ok(all)
}

/// 7:4:1, in an order without bursts of one length.
pub(super) const IMIX: [usize; 12] = [78, 590, 78, 78, 590, 78, 1514, 78, 590, 78, 78, 590];

/// Addresses that follow each other.
fn row(first: IpAddr, count: u32, what: &str) -> Result<Vec<IpAddr>, Failure> {
    let wrong = || {
        Failure::Config(format!(
            "error: {count} {what} from {first}: write 1 to 65536 that fit behind it"
        ))
    };
    if !(1..=65_536).contains(&count) {
        return Err(wrong());
    }
    let next = |n: u32| match first {
        IpAddr::V4(v4) => u32::from(v4).checked_add(n).map(|v| IpAddr::V4(v.into())),
        IpAddr::V6(v6) => u128::from(v6)
            .checked_add(u128::from(n))
            .map(|v| IpAddr::V6(v.into())),
    };
    (0..count).map(|n| next(n).ok_or_else(wrong)).collect()
}

pub(super) fn run(args: &GenPcapArgs) -> Result<(), Failure> {
    if !(1..=MOST).contains(&args.count) {
        return Err(Failure::Config(format!(
            "error: --count {}: write 1 to {MOST}",
            args.count
        )));
    }
    let traffic = Traffic {
        qps: args.qps,
        operations: operations(&args.ops).map_err(Failure::Config)?,
        sizes: sizes(&args.frames).map_err(Failure::Config)?,
        senders: row(args.src, args.senders, "senders")?,
        receivers: row(args.dst, args.receivers, "receivers")?,
        src_mac: args.src_mac,
        dst_mac: args.dst_mac,
        vlan: args.vlan,
        dscp: args.dscp,
        ecn: args.ecn,
        seed: args.seed,
    };
    let steps = usize::try_from(args.count).unwrap_or(usize::MAX);
    let frames = traffic
        .frames(steps)
        .map_err(|error| Failure::Config(format!("error: {error}")))?;
    let mut out = Output::create(&args.out)?;
    let mut reverse = args.reverse.as_deref().map(Output::create).transpose()?;
    let mut time = Duration::ZERO;
    for (way, frame) in frames {
        let file = match (&mut reverse, way) {
            (Some(reverse), Way::Back) => reverse,
            _ => &mut out,
        };
        file.put(time, &frame)?;
        let bits = u64::from(wire_len(frame.len())) * 8;
        time += Duration::from_nanos(bits * 1_000_000_000 / args.rate.0);
    }
    for file in [Some(out), reverse].into_iter().flatten() {
        file.finish()?;
    }
    Ok(())
}

struct Output<'a> {
    path: &'a Path,
    writer: PcapWriter<BufWriter<File>>,
    frames: u64,
    bytes: u64,
}

impl Output<'_> {
    fn create(path: &Path) -> Result<Output<'_>, Failure> {
        let file = output::create(path, true)?;
        let writer = PcapWriter::new(BufWriter::new(file))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output {
            path,
            writer,
            frames: 0,
            bytes: 0,
        })
    }

    fn put(&mut self, time: Duration, frame: &[u8]) -> Result<(), Failure> {
        let len = u32::try_from(frame.len()).context("a frame too long for a capture")?;
        self.writer
            .write_packet(&PcapPacket::new(time, len, frame))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.frames += 1;
        self.bytes += u64::from(len);
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        let Output {
            path,
            writer,
            frames,
            bytes,
        } = self;
        let mut file = writer.into_writer();
        std::io::Write::flush(&mut file)
            .with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!(
            "{}: {frames} frames, {bytes} bytes\n",
            path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_mixes_are_read() {
        let ops = operations("write=2,ack").unwrap();
        assert_eq!(ops, [Operation::Write, Operation::Write, Operation::Ack]);
        assert!(operations("write=0").unwrap_err().contains("1 to 1000"));
        assert!(operations("put").unwrap_err().contains("no operation"));
        assert_eq!(sizes("62,1082").unwrap(), [62, 1082]);
        assert_eq!(sizes("imix").unwrap().len(), 12);
        assert!(sizes("big").is_err());
    }

    #[test]
    fn rows_of_addresses_stay_within_the_family() {
        let last = "255.255.255.255".parse().unwrap();
        assert!(row(last, 1, "senders").is_ok());
        assert!(row(last, 2, "senders").is_err());
        assert!(row(last, 0, "senders").is_err());
    }
}
