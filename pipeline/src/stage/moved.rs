//! Queue of the frames of moved hosts: RoCEv2 frames that would enter a watched queue enter that of the moved hosts. Runs only while a host is moved.
//!
//! Law: DSCP and PCP leave as they would from the watched queue, as do all frames of other hosts.

use crate::burst::{Places, QueueKey, Record};
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, MetaFlags};
use crate::moved_hosts::{HostAddress, MovedView};
use crate::per::PerPort;
use crate::wire::ipv6;

/// Changes the queue keys of a burst that was rewritten, except those of frames in `gone`. Returns the queue of all of them, if they have the same.
#[inline(never)]
pub fn run<B: FrameBuf>(
    moved: &MovedView,
    ports: &PerPort<EgressPort>,
    (frames, records): (&[B], &mut [Record]),
    gone: Places,
) -> Option<QueueKey> {
    let mut queue = None;
    let mut is_one = true;
    for (place, (buf, record)) in frames.iter().zip(records).enumerate() {
        if gone.has(place) {
            continue;
        }
        let key = record.queue;
        if record.is_roce()
            && ports[key.egress()].is_watched(key.priority())
            && source(buf.data(), record).is_some_and(|host| moved.holds(host))
        {
            record.queue = QueueKey::new(key.egress(), moved.priority());
        }
        is_one &= *queue.get_or_insert(record.queue) == record.queue;
    }
    queue.filter(|_| is_one)
}

/// Returns the sender of a packet in a frame as it is sent; `None` if the frame is too short.
#[inline]
fn source(frame: &[u8], record: &Record) -> Option<HostAddress> {
    if !record.flags.has(MetaFlags::IPV6) {
        return Some(HostAddress::of_v4(crate::bits::low32(
            record.addresses >> 32,
        )));
    }
    let address = frame.get(record.flags.l3_off() + ipv6::ADDRESSES..)?;
    Some(HostAddress::of_v6(u128::from_be_bytes(
        *address.first_chunk()?,
    )))
}
