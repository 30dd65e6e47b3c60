//! UDP checksum of IPv6 frames.

/// Writes the UDP checksum of an IPv6 frame.
pub(super) fn seal(mut frame: Vec<u8>, tagged: bool) -> Vec<u8> {
    let l3 = if tagged { 18 } else { 14 };
    let checksum = udp6(frame.get(l3..).unwrap_or_default());
    if let Some(place) = frame.get_mut(l3 + 46..l3 + 48) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

/// Computes the UDP checksum of a plain IPv6 packet whose checksum field is 0.
fn udp6(packet: &[u8]) -> u16 {
    let words = |bytes: &[u8]| -> u64 {
        let word = |pair: &[u8]| match pair {
            [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
            [high] => u64::from(*high) << 8,
            _ => 0,
        };
        bytes.chunks(2).map(word).sum()
    };
    let udp = packet.get(40..).unwrap_or_default();
    let mut sum = words(packet.get(8..40).unwrap_or_default()) + words(udp) + udp.len() as u64 + 17;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // 0 would mean that there is no checksum.
    match u16::try_from(sum).map_or(0, |sum| !sum) {
        0 => u16::MAX,
        checksum => checksum,
    }
}
