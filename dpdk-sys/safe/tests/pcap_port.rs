//! net_pcap: a capture in, a capture out, byte for byte, up to frames of 9,216 bytes in one buffer;
//! and frames that the driver chains because they do not fit one.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]

mod common;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use npcc_dpdk::{Burst, FillError, Mempool, MempoolConfig, Port, PortConfig, PortError};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};

fn write(path: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(File::create(path).unwrap()).unwrap();
    for (i, frame) in (0..).zip(frames) {
        let packet = PcapPacket::new(
            Duration::from_micros(i),
            u32::try_from(frame.len()).unwrap(),
            frame,
        );
        writer.write_packet(&packet).unwrap();
    }
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.unwrap().data.into_owned());
    }
    frames
}

#[test]
fn a_capture_passes_through_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (
        folder.path().join("in.pcap"),
        folder.path().join("out.pcap"),
    );
    let frames: Vec<_> = [60, 64, 1082, 1518, 4154, 9000, 9216, 61]
        .into_iter()
        .zip(0..)
        .map(|(len, tag)| common::frame(tag, len))
        .collect();
    write(&input, &frames);

    let eal = common::eal();
    let pool = common::pool(&eal, 9216);
    let device = format!(
        "net_pcap0,rx_pcap={},tx_pcap={}",
        input.display(),
        output.display()
    );
    let mut port = Port::open_by_device(&eal, &device).unwrap();
    let too_large = PortConfig {
        mtu: 9216 - 21,
        ..PortConfig::default()
    };
    assert!(matches!(
        port.configure(&too_large, &pool),
        Err(PortError::BufferTooSmall { .. })
    ));
    port.configure(
        &PortConfig {
            mtu: 9216 - 22,
            ..PortConfig::default()
        },
        &pool,
    )
    .unwrap();
    let unsupported = port.set_mac([2, 0, 0, 0, 1, 1]).unwrap_err();
    assert!(unsupported.is_unsupported(), "{unsupported}");
    port.start().unwrap();
    let mut rx = port.rx_queue(0).unwrap();
    let mut tx = port.tx_queue(0).unwrap();

    let mut burst = Burst::<32>::new();
    assert_eq!(rx.rx(&mut burst), frames.len());
    for (mbuf, frame) in burst.iter().zip(&frames) {
        assert_eq!((mbuf.segment_count(), mbuf.data()), (1, frame.as_slice()));
        assert_eq!(
            (mbuf.port(), usize::try_from(mbuf.len())),
            (port.id(), Ok(frame.len()))
        );
    }
    assert_eq!(tx.tx(&mut burst), frames.len());
    assert_eq!(rx.rx(&mut burst), 0, "the capture is over");
    assert_eq!(port.stats().unwrap().tx_packets, 8);
    drop((rx, tx, port));
    assert_eq!(read(&output), frames);
    assert_eq!(pool.in_use(), 0);

    // Buffers smaller than the frame: the driver chains them, and the whole frame is there in
    // segments.
    let config = MempoolConfig {
        name: "small".to_owned(),
        mbufs: 63,
        cache: 0,
        frame_room: 2048,
        socket: None,
    };
    let small = Mempool::new(&eal, &config).unwrap();
    let mut port =
        Port::open_by_device(&eal, &format!("net_pcap1,rx_pcap={}", input.display())).unwrap();
    port.configure(&PortConfig::default(), &small).unwrap();
    port.start().unwrap();
    let mut rx = port.rx_queue(0).unwrap();
    assert_eq!(rx.rx(&mut burst), frames.len());
    let mut jumbo = burst.take(6).unwrap();
    assert!(jumbo.segment_count() > 1 && jumbo.len() == 9216);
    assert_eq!(jumbo.segments().collect::<Vec<_>>().concat(), frames[6]);
    assert!(!jumbo.truncate(1));
    assert!(matches!(jumbo.fill(&[0; 60]), Err(FillError::Chained { segments }) if segments > 1));
    assert!(jumbo.trim_front(14) && jumbo.len() == 9202);
    drop((jumbo, burst));
    assert_eq!(small.in_use(), 0, "a chain is freed whole");
}
