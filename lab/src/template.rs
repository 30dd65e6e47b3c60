//! Traffic of many flows from a source that holds few frames, for measurements.
//!
//! An endless source with a frame in memory for every flow measures mostly its own reading. A traffic generator instead keeps
//! a few frames and writes addresses, port, queue pair and sequence number into each as it goes; this module does the same as frames come
//! in, before anything looks at them. A template is 19 bytes and they are read in order, so the source's own share hardly depends on the
//! number of flows.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow};
use npcc_pipeline::icrc;
use npcc_pipeline::wire::bth::ICRC_LEN;
use pcap_file::pcap::PcapReader;

/// Octets of the header checksum, both addresses and the UDP source port in an untagged IPv4 frame without options.
const HEAD: Range<usize> = 24..36;
/// Octets of the destination queue pair in the frame's BTH.
const QUEUE_PAIR: Range<usize> = 47..50;
/// Octets of the packet sequence number in the frame's BTH.
const PSN: Range<usize> = 51..54;

/// Fields that make a frame belong to one flow.
#[derive(Debug, Clone, Copy)]
struct Template {
    head: [u8; 12],
    queue_pair: [u8; 3],
    /// ICRC of the frame with sequence number 0.
    icrc: [u8; ICRC_LEN],
}

/// Templates of flows, written into frames in turn.
#[derive(Debug, Clone)]
pub struct Templates {
    all: Box<[Template]>,
    next: usize,
    /// Sequence number of each flow's next packet.
    psn: u32,
    /// Change that this number makes to every ICRC: CRCs are linear, and the frames differ in the template only.
    change: [u8; ICRC_LEN],
    /// First frame of the capture, whose payload all frames get.
    frame: Vec<u8>,
}

impl Templates {
    /// Reads the flows of a capture of untagged RoCEv2 frames over IPv4, all of one length and alike but for the template.
    ///
    /// # Errors
    /// The capture cannot be read, holds nothing, or another kind of frame.
    pub fn read(path: &Path) -> anyhow::Result<Templates> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        Templates::of(BufReader::new(file), &name)
    }

    /// Reads the flows of a capture as [`Templates::read`] does; errors call it `name`.
    ///
    /// # Errors
    /// The capture holds nothing, or another kind of frame, or is no pcap file.
    pub fn of(capture: impl Read, name: &str) -> anyhow::Result<Templates> {
        let mut reader =
            PcapReader::new(capture).with_context(|| format!("{name} is not a pcap file"))?;
        let (mut all, mut frame) = (Vec::new(), Vec::<u8>::new());
        while let Some(packet) = reader.next_packet() {
            let packet =
                packet.with_context(|| format!("{name}: cannot read frame {}", all.len() + 1))?;
            if all.is_empty() {
                frame = packet.data.to_vec();
            }
            let template = Template::of(&packet.data, &mut frame).ok_or_else(|| {
                anyhow!(
                    "{name}: frame {} is not RoCEv2 over IPv4, or not as long as the first",
                    all.len() + 1
                )
            })?;
            all.push(template);
        }
        if all.is_empty() {
            return Err(anyhow!("{name} holds no frame"));
        }
        Ok(Templates {
            all: all.into_boxed_slice(),
            next: 0,
            psn: 0,
            change: [0; ICRC_LEN],
            frame,
        })
    }

    /// Writes the next flow's template and sequence number into a frame.
    #[inline]
    pub fn rewrite(&mut self, frame: &mut [u8]) {
        let Some(template) = self.all.get(self.next) else {
            return;
        };
        if let Some(first) = frame.first_chunk_mut::<{ PSN.end }>() {
            let [_, psn @ ..] = self.psn.to_be_bytes();
            first[HEAD].copy_from_slice(&template.head);
            first[QUEUE_PAIR].copy_from_slice(&template.queue_pair);
            first[PSN].copy_from_slice(&psn);
        }
        let body = frame.get_mut(PSN.end..).zip(self.frame.get(PSN.end..));
        if let Some((place, body)) = body.filter(|(place, body)| place.len() == body.len()) {
            place.copy_from_slice(body);
        }
        if let Some(place) = frame.last_chunk_mut::<ICRC_LEN>() {
            *place = added(template.icrc, self.change);
        }
        self.next += 1;
        if self.next == self.all.len() {
            self.next = 0;
            self.psn = self.psn.wrapping_add(1);
            self.change = added(
                icrc_with(&mut self.frame, 0),
                icrc_with(&mut self.frame, self.psn),
            );
        }
    }
}

/// Returns the ICRC that a frame has with this sequence number.
fn icrc_with(frame: &mut [u8], psn: u32) -> [u8; ICRC_LEN] {
    let [_, psn @ ..] = psn.to_be_bytes();
    if let Some(place) = frame.get_mut(PSN) {
        place.copy_from_slice(&psn);
    }
    icrc::seal(frame);
    frame.last_chunk().copied().unwrap_or_default()
}

/// Returns the XOR of two CRCs, which is their sum and their difference.
fn added(one: [u8; ICRC_LEN], other: [u8; ICRC_LEN]) -> [u8; ICRC_LEN] {
    (u32::from_ne_bytes(one) ^ u32::from_ne_bytes(other)).to_ne_bytes()
}

impl Template {
    /// Extracts the template of `frame`, which is also written into `base` to compute the ICRC; `None` if the frame does not fit.
    fn of(frame: &[u8], base: &mut [u8]) -> Option<Template> {
        if frame.len() != base.len() {
            return None;
        }
        let first = frame.first_chunk::<{ QUEUE_PAIR.end }>()?;
        let is_roce = first[12..15] == [8, 0, 0x45]
            && first[23] == 17
            && first[36..38] == 4791u16.to_be_bytes();
        for field in [HEAD, QUEUE_PAIR] {
            base.get_mut(field.clone())?.copy_from_slice(&first[field]);
        }
        is_roce.then_some(Template {
            head: first[HEAD].try_into().ok()?,
            queue_pair: first[QUEUE_PAIR].try_into().ok()?,
            icrc: icrc_with(base, 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Operation, Traffic};
    use npcc_pipeline::units::Mac;
    use pcap_file::pcap::{PcapPacket, PcapWriter};
    use std::time::Duration;

    fn frames(qps: usize) -> Vec<Vec<u8>> {
        let traffic = Traffic {
            qps,
            operations: vec![Operation::Send],
            sizes: vec![62],
            senders: vec!["10.0.1.3".parse().unwrap()],
            receivers: (1..200u8).map(|n| [10, 0, 2, n].into()).collect(),
            src_mac: Mac([2, 0, 0, 0, 1, 3]),
            dst_mac: Mac([2, 0, 0, 0, 1, 1]),
            vlan: None,
            dscp: 26,
            ecn: 2,
            seed: 1,
        };
        traffic
            .frames(qps)
            .unwrap()
            .map(|(_, frame)| frame)
            .collect()
    }

    #[test]
    fn a_stamped_frame_is_its_flows_and_they_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows.pcap");
        let wanted = frames(300);
        let mut writer = PcapWriter::new(File::create(&path).unwrap()).unwrap();
        for frame in &wanted {
            let packet = PcapPacket::new(Duration::ZERO, 62, frame);
            writer.write_packet(&packet).unwrap();
        }
        drop(writer);
        let mut templates = Templates::read(&path).unwrap();
        let parsed = |frame: &[u8]| npcc_pipeline::parse::parse(frame).unwrap();
        let twice = [0, 1].map(|psn| wanted.iter().map(move |want| (psn, want)));
        for (psn, want) in twice.into_iter().flatten() {
            let mut frame = wanted[7].clone();
            templates.rewrite(&mut frame);
            let (now, then) = (parsed(&frame), parsed(want));
            assert_eq!(now.addresses_v4, then.addresses_v4);
            let key = |roce: npcc_pipeline::parse::Roce| (roce.dest_qp, roce.src_port);
            assert_eq!(now.roce.map(key), then.roce.map(key));
            assert_eq!(icrc::verify(&frame, &now), Some(true));
            assert_eq!(now.roce.map(|roce| roce.psn()), Some(psn));
            assert_eq!(frame[14..34], want[14..34], "the header and its checksum");
        }
    }

    #[test]
    fn other_frames_are_refused() {
        let mut frame = frames(1).remove(0);
        let mut base = frame.clone();
        assert!(Template::of(&frame, &mut base).is_some());
        assert!(Template::of(&frame[..49], &mut base).is_none());
        frame[23] = 6;
        assert!(Template::of(&frame, &mut base).is_none());
    }
}
