//! Fuzz target of the connection manager's messages: any payload of QP1 is a message or none, whose numbers have the bits of their
//! fields, and a frame that carries it is copied whole. Most payloads have the header of a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::cm::message::Message;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::Meta;
use npcc_pipeline::icrc;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::Nanos;

/// Octets of a message's UDP payload up to the ICRC.
const LEN: usize = 276;

fuzz_target!(|bytes: &[u8]| {
    let [how, attribute, fields @ ..] = bytes else { return };
    let payload = if how & 1 == 0 { fields.to_vec() } else { headed(*attribute, fields) };
    let message = Message::of(&payload);
    check(message);
    // Only the message counts: what stands behind it does not.
    assert_eq!(message, payload.get(..LEN).and_then(Message::of));

    // The payload follows the BTH, so its first twelve octets are the frame's own.
    let Some(rest) = payload.get(12..) else { return };
    let ends = if how & 2 == 0 { ["10.0.1.3", "10.0.2.2"] } else { ["2001:db8:1::3", "2001:db8:2::2"] };
    let [src, dst] = ends.map(|end| end.parse().unwrap());
    let craft = Craft { payload: rest.to_vec(), ..Craft::roce(src, dst, payload[0], 1, 0) };
    let mut frame = craft.frame();
    if how & 4 != 0 {
        icrc::seal(&mut frame);
    }
    let Ok(parsed) = parse(&frame) else { return };
    let Some(roce) = parsed.roce else { return };
    let meta = Meta::NOTHING;
    let sighting = Sighting { data: &frame, addresses: 0, parsed: &parsed, roce, meta: &meta, now: Nanos::ZERO };
    let Some(key) = FlowKey::of_packet(&frame, &parsed, Qpn::new(1)) else { return };
    if let Some(copy) = CmCopy::of(&sighting, key) {
        check(copy.message());
        assert_eq!(Some(copy.is_intact()), icrc::verify(&frame, &parsed));
    }
});

/// Returns a payload with the header of a message: BTH and DETH of a datagram to QP1, and the MAD header.
fn headed(attribute: u8, fields: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; LEN];
    for (place, octet) in payload[44..].iter_mut().zip(fields) {
        *place = *octet;
    }
    payload[0] = 0x64;
    payload[7] = 1;
    payload[12..14].copy_from_slice(&[0x80, 1]);
    payload[19] = 1;
    payload[20..24].copy_from_slice(&[1, 7, 2, 3]);
    payload[37] = 0x10 + attribute % 12;
    payload
}

/// Checks the numbers of a message.
fn check(message: Option<Message>) {
    match message {
        Some(Message::Req { psn, flow_label, .. }) => assert!(psn < 1 << 24 && flow_label < 1 << 20),
        Some(Message::Rep { psn, .. }) => assert!(psn < 1 << 24),
        Some(Message::Lap { flow_label, .. }) => assert!(flow_label < 1 << 20),
        _ => {}
    }
}
