//! Cost of receiving and sending through this layer, per frame, with drivers that do next to
//! nothing.
//!
//! `cargo bench -p npcc-dpdk` prints one line for each path: the best and the median of several runs on
//! one lcore. Without hugepages the figures are worse and vary more; the line says which it was.
#![allow(clippy::print_stdout, reason = "its result is what it prints")]

use std::error::Error;
use std::fs::File;
use std::time::Duration;

use npcc_dpdk::{
    Burst, Clock, Eal, Mempool, MempoolConfig, Port, PortConfig, RxQueue, Tsc, TxQueue,
    hugepages_available,
};
use pcap_file::pcap::{PcapPacket, PcapWriter};

const BURST: usize = 32;
const BURSTS_A_RUN: u32 = 100_000;
const RUNS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --all-targets` runs it too, to see that it works: then once is enough.
    let runs = if std::env::args().any(|arg| arg == "--bench") {
        RUNS
    } else {
        1
    };
    let prefix = format!("--file-prefix=npcc-bench-{}", std::process::id());
    let huge = hugepages_available() >= 256 << 20;
    let mut args = vec![
        "-l",
        "0",
        "--no-pci",
        "--no-telemetry",
        "--log-level=warning",
        &prefix,
    ];
    args.extend(if huge {
        &["--in-memory"][..]
    } else {
        &["--no-huge", "-m", "128", "--no-shconf"]
    });
    let eal = Eal::init(&args.into_iter().map(str::to_owned).collect::<Vec<_>>())?;
    let clock = Clock::new(&eal);
    let config = MempoolConfig {
        name: "bench".to_owned(),
        mbufs: 8191,
        cache: 256,
        frame_room: 2048,
        socket: None,
    };
    let pool = Mempool::new(&eal, &config)?;
    let folder = tempfile::tempdir()?;
    let memory = if huge { "hugepages" } else { "no hugepages" };

    let mut sink = open(&eal, "net_null1,no-rx=1", &pool)?;
    let mut tx = sink.tx_queue(0)?;
    for (name, device) in [
        ("net_null -> net_null, 64 B", "net_null0,size=64".to_owned()),
        (
            "net_pcap (infinite_rx) -> net_null, 62 B",
            capture(&folder, 62)?,
        ),
        (
            "net_pcap (infinite_rx) -> net_null, 1082 B",
            capture(&folder, 1082)?,
        ),
    ] {
        let port = open(&eal, &device, &pool)?;
        let mut rx = port.rx_queue(0)?;
        let mut took = Vec::new();
        for _ in 0..runs {
            took.push(run(&clock, &mut rx, &mut tx)?);
        }
        took.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.2} ns/frame best, {:.2} median of {runs} ({memory})",
            took[0],
            took[runs / 2]
        );
    }
    drop(tx);
    sink.stop()?;
    Ok(())
}

fn open(eal: &Eal, device: &str, pool: &Mempool) -> Result<Port, Box<dyn Error>> {
    let mut port = Port::open_by_device(eal, device)?;
    port.configure(&PortConfig::default(), pool)?;
    port.start()?;
    Ok(port)
}

/// Writes a capture of 64 frames of `len` bytes, which a port repeats for ever; returns the device's name.
fn capture(folder: &tempfile::TempDir, len: u16) -> Result<String, Box<dyn Error>> {
    let path = folder.path().join(format!("{len}.pcap"));
    let mut writer = PcapWriter::new(File::create(&path)?)?;
    for i in 0..64_u8 {
        let frame = vec![i; usize::from(len)];
        writer.write_packet(&PcapPacket::new(
            Duration::from_secs(i.into()),
            len.into(),
            &frame,
        ))?;
    }
    drop(writer);
    Ok(format!(
        "net_pcap{len},rx_pcap={},infinite_rx=1",
        path.display()
    ))
}

/// Measures one run; returns the nanoseconds per frame.
fn run(clock: &Clock, rx: &mut RxQueue, tx: &mut TxQueue) -> Result<f64, Box<dyn Error>> {
    let mut burst = Burst::<BURST>::new();
    let mut frames = 0_u64;
    let start = Tsc::now();
    for _ in 0..BURSTS_A_RUN {
        rx.rx(&mut burst);
        frames += u64::try_from(tx.tx(&mut burst))?;
    }
    let ns = clock.ns_of(Tsc::now().cycles() - start.cycles());
    Ok(Duration::from_nanos(ns).as_secs_f64() * 1e9 / f64::from(u32::try_from(frames)?))
}
