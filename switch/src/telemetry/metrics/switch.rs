//! Metrics of the switch as a whole.

use super::family::families;
use super::scrape::seconds;

families! {
    "npcc_build" Info "Version of the switch and of DPDK." |all, to|
        to.info(&[("version", &all.snapshot.version)]);
    "npcc_uptime_seconds" Gauge "Time since the switch began to forward." |all, to|
        to.real(&[], all.snapshot.seconds);
    "npcc_held_frames" Gauge "Frames that wait in queues or are in hand." |all, to|
        to.gauge(&[], all.snapshot.conservation.held.packets);
    "npcc_held_bytes" Gauge "Bytes of the frames that wait in queues or are in hand." |all, to|
        to.gauge(&[], all.snapshot.conservation.held.bytes);
    "npcc_buffer_size_bytes" Gauge "Size of the packet buffer by part: pool is all of it, shared and headroom are parts of that." |all, to| {
        let buffer = &all.snapshot.buffer;
        to.gauge(&[("part", "pool")], buffer.pool)?;
        to.gauge(&[("part", "shared")], buffer.shared)?;
        to.gauge(&[("part", "headroom")], buffer.headroom_size)
    };
    "npcc_buffer_used_bytes" Gauge "Wire bytes that the packet buffer holds: of the whole pool, and of its headroom." |all, to| {
        to.gauge(&[("part", "pool")], all.snapshot.buffer.used)?;
        to.gauge(&[("part", "headroom")], all.snapshot.buffer.headroom)
    };
    "npcc_buffer_used_peak_bytes" Gauge "Most wire bytes held since watermarks were cleared: of the whole pool, and of its headroom." |all, to| {
        to.gauge(&[("part", "pool")], all.snapshot.buffer.used_peak)?;
        to.gauge(&[("part", "headroom")], all.snapshot.buffer.headroom_peak)
    };
    "npcc_buffer_used_frames" Gauge "Frames that the packet buffer holds." |all, to|
        to.gauge(&[], all.snapshot.buffer.frames);
    "npcc_turn_longest_seconds" Gauge "Longest turn of a worker's loop since watermarks were cleared." |all, to|
        to.real(&[], seconds(all.snapshot.buffer.turn_ns));
    "npcc_turn_covered_seconds" Gauge "Longest turn of a worker's loop that headroom covers." |all, to|
        to.real(&[], seconds(all.snapshot.buffer.turn_covered_ns));
}
