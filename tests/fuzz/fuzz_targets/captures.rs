//! Fuzz target of captures: any record of the switch's capture stream is an event that is written as it was read, or none, and any file
//! gives templates of flows, whose frames pass as RoCEv2, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_lab::template::Templates;
use npcc_pipeline::capture::{Event, Fields};
use npcc_pipeline::parse::parse;

fuzz_target!(|bytes: &[u8]| {
    let [how, bytes @ ..] = bytes else { return };
    // A reader of files has a buffer of 8 MB, so most inputs are events.
    let file = match how {
        0 => bytes.to_vec(),
        1 => [&HEADER[..], bytes].concat(),
        2 => file(bytes),
        _ => return event(bytes),
    };
    let Ok(mut templates) = Templates::of(&file[..], "fuzz.pcap") else { return };
    for len in [0, 40, 60, bytes.len(), 1_500] {
        let mut frame = vec![0; len];
        templates.rewrite(&mut frame);
        let _ = parse(&frame);
    }
});

/// Reads a record of the capture stream.
fn event(record: &[u8]) {
    if let Some((event, frame)) = Event::decode(record) {
        let _ = Fields::of(frame);
        let again = [&event.encode()[..], frame].concat();
        assert_eq!(Event::decode(&again), Some((event, frame)));
    }
}

/// Header of a pcap file of Ethernet frames with times in microseconds.
const HEADER: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];

/// Returns a capture with this frame alone, made RoCEv2 over IPv4 by its EtherType, protocol and port.
fn file(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(head) = frame.first_chunk_mut::<38>() {
        head[12..15].copy_from_slice(&[8, 0, 0x45]);
        head[23] = 17;
        head[36..38].copy_from_slice(&4791u16.to_be_bytes());
    }
    let len = u32::try_from(frame.len()).unwrap().to_le_bytes();
    [&HEADER[..], &[0; 8], &len, &len, &frame].concat()
}
