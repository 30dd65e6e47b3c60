//! Memory requirements as a table for `check`.

use std::fmt;

use super::{EAL_MARGIN, Sizing, SpeedFrom};
use npcc_pipeline::tx_ring::BATCH;

/// Formats bytes in a unit that is easy to read, rounded up in the last place.
fn human(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..1_048_576 => (1 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1u64 << 30, "GiB"),
    };
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |what: &str, value: String, note: String| {
            writeln!(
                f,
                "{}",
                format!("  {what:<18}{value:>12}  {note}").trim_end()
            )
        };
        let each = format!(
            "{} buffers, data room {} B each",
            self.mbufs, self.mbuf_data_room
        );
        line("packet memory", human(self.mempool_bytes), each)?;
        line("queues", human(self.queue_bytes), "all ports".to_owned())?;
        line(
            "routing tables",
            human(self.fib_bytes),
            "both images, estimate".to_owned(),
        )?;
        line("flow table", human(self.flow_bytes), "estimate".to_owned())?;
        line("together", human(self.total_bytes()), String::new())?;
        let pages = format!(
            "sysctl vm.nr_hugepages={}, with {} for DPDK itself",
            self.hugepages(),
            human(EAL_MARGIN)
        );
        line("2 MiB hugepages", self.hugepages().to_string(), pages)?;
        if self.headroom.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n  headroom")?;
        writeln!(
            f,
            "  {:<16}{:>8}{:>10}{:>8}  {:<12}{:>14}",
            "port", "priority", "cable", "link", "from", "bytes"
        )?;
        for row in &self.headroom {
            let (speed, from) = (row.speed.to_string(), row.from.name());
            let bytes = row
                .bytes
                .map_or_else(|| "no pause".to_owned(), |b| b.to_string());
            let (port, priority, cable) = (&row.port, row.priority, row.cable);
            writeln!(
                f,
                "  {port:<16}{priority:>8}{cable:>10}{speed:>8}  {from:<12}{bytes:>14}"
            )?;
        }
        if self
            .headroom
            .iter()
            .any(|row| row.from == SpeedFrom::Assumed)
        {
            writeln!(f, "  assumed: computed anew whenever the link comes up")?;
        }
        if let Some(batch) = self.headroom.iter().map(|row| row.batch).max()
            && batch > 0
        {
            writeln!(
                f,
                "  PCI devices: up to {batch} bytes of it for frames in the transmit ring whose driver confirms them in batches of {BATCH}; \
                 the start leaves them out for a driver that cannot tell"
            )?;
        }
        let room = &self.lossless;
        writeln!(
            f,
            "\n  buffer, at frames of {} B on average",
            room.min_frame
        )?;
        let mut line = |what: &str, bytes: u64, note: String| {
            let buffers = room.buffers(bytes);
            writeln!(f, "  {what:<18}{bytes:>12} B {buffers:>9} buffers  {note}")
        };
        line("pool", room.pool, String::new())?;
        line("headroom", room.headroom, String::new())?;
        line("reserves", room.reserved, String::new())?;
        let groups = format!("for {} lossless groups and all lossy queues", room.groups);
        line("shared", room.shared, groups)?;
        let least = "pause begins here when all groups are congested".to_owned();
        line("least XOFF", room.least_xoff, least)
    }
}
