//! A capture as pcapng: an interface for each port of the switch, a comment for each frame, and at the end what was lost.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use npcc_api::capture::{CaptureEnd, CaptureStart};
use npcc_pipeline::capture::{Event, Kind};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};

use super::words;

/// `epb_flags`: the direction of a frame, as the switch's port sees it.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// `if_tsresol`: times are in 10^-9 s.
const NANOSECONDS: u8 = 9;

/// A file that is written.
pub(super) struct Pcapng<W: Write> {
    file: PcapNgWriter<W>,
    start: CaptureStart,
    last: Duration,
}

/// An error of the file, in which one of the stream beneath stays what it is: a reader that went away is no failure.
fn plain(error: pcap_file::PcapError) -> anyhow::Error {
    match error {
        pcap_file::PcapError::IoError(error) => error.into(),
        other => other.into(),
    }
}

impl<W: Write> Pcapng<W> {
    /// With its head: who wrote it, and the switch's ports.
    pub(super) fn new(
        out: W,
        start: &CaptureStart,
        (filter, snaplen): (&str, u16),
    ) -> Result<Pcapng<W>> {
        let by = format!("npcc-switch {}", start.version);
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![SectionHeaderOption::UserApplication(by.into())],
            ..SectionHeaderBlock::default()
        };
        let mut file = PcapNgWriter::with_section_header(out, section).map_err(plain)?;
        for (name, mac) in &start.ports {
            let mac: Vec<u8> = mac
                .split(':')
                .filter_map(|octet| u8::from_str_radix(octet, 16).ok())
                .collect();
            // A filter of ours is none of pcap's, so it is told as words.
            let filter = format!("filter: {filter}");
            let mut options = vec![
                InterfaceDescriptionOption::IfName(name.as_str().into()),
                InterfaceDescriptionOption::IfMacAddr(mac.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            if filter != "filter: " {
                options.push(InterfaceDescriptionOption::Comment(filter.into()));
            }
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: snaplen.into(),
                options,
            };
            file.write_pcapng_block(block).map_err(plain)?;
        }
        Ok(Pcapng {
            file,
            start: start.clone(),
            last: Duration::ZERO,
        })
    }

    /// A frame with what became of it. It belongs to the port it came in by until a queue is chosen for it, then to the one it
    /// leaves by, as it is counted.
    pub(super) fn frame(&mut self, event: &Event, frame: &[u8]) -> Result<()> {
        let (port, flags) = match (event.kind, event.ingress, event.egress) {
            (Kind::Received, port, _) | (_, port, None) => (port, INBOUND),
            (_, _, port) => (port, OUTBOUND),
        };
        self.last = Duration::from_nanos(words::since_1970(&self.start, event.time));
        let comment = words::comment(&self.start, event);
        let block = EnhancedPacketBlock {
            interface_id: port.map_or(0, |port| u32::from(port.0)),
            timestamp: self.last,
            original_len: event.len.into(),
            data: Cow::Borrowed(frame),
            options: vec![
                EnhancedPacketOption::Comment(comment.into()),
                EnhancedPacketOption::Flags(flags),
            ],
        };
        self.file.write_pcapng_block(block).map_err(plain)?;
        Ok(())
    }

    /// Totals of captured and lost frames of all ports: they stand with the first.
    pub(super) fn end(&mut self, end: &CaptureEnd) -> Result<()> {
        let comment = format!(
            "all ports: {} frames captured, {} lost for want of room in the capture; ended by {}",
            end.captured, end.lost, end.why
        );
        let block = InterfaceStatisticsBlock {
            interface_id: 0,
            timestamp: u64::try_from(self.last.as_nanos()).unwrap_or(u64::MAX),
            options: vec![
                InterfaceStatisticsOption::Comment(comment.into()),
                InterfaceStatisticsOption::IsbIfRecv(end.captured.saturating_add(end.lost)),
                InterfaceStatisticsOption::IsbIfDrop(end.lost),
            ],
        };
        self.file.write_pcapng_block(block).map_err(plain)?;
        Ok(())
    }

    /// Hands on what was written.
    pub(super) fn flush(&mut self) -> Result<()> {
        Ok(self.file.get_mut().flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};

    /// The frames of all ports that were lost to the capture are the drops of the first interface, and of no other.
    #[test]
    fn what_a_capture_lost_is_isb_ifdrop_of_the_first_interface() {
        let start = CaptureStart {
            id: 1,
            version: "1".to_owned(),
            ports: ["dc0", "wan0"]
                .map(|name| (name.to_owned(), "02:00:00:00:01:01".to_owned()))
                .to_vec(),
            epoch_ns: 0,
            clock_ns: 0,
            scale: 1.0,
        };
        let mut file = Vec::new();
        let mut out = Pcapng::new(&mut file, &start, ("", 96)).unwrap();
        let end = CaptureEnd {
            captured: 5,
            lost: 7,
            why: "time".to_owned(),
        };
        out.end(&end).unwrap();
        out.flush().unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut totals = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::InterfaceStatistics(block) = block.unwrap() {
                let count = |wanted: fn(&InterfaceStatisticsOption<'_>) -> Option<u64>| {
                    block.options.iter().find_map(wanted)
                };
                let received = count(|option| match option {
                    InterfaceStatisticsOption::IsbIfRecv(count) => Some(*count),
                    _ => None,
                });
                let dropped = count(|option| match option {
                    InterfaceStatisticsOption::IsbIfDrop(count) => Some(*count),
                    _ => None,
                });
                totals.push((block.interface_id, received, dropped));
            }
        }
        assert_eq!(totals, [(0, Some(12), Some(7))]);
    }
}
