//! Carrier of the kernel's interface of a card that DPDK shares (mlx5, mlx4), by the counters that the kernel keeps of it.
//!
//! The driver itself takes three system calls a time under the kernel's RTNL lock, and a command to the firmware. Neither the flag that it
//! reads (`IFF_RUNNING`) nor netlink's messages are in time: the kernel delays both by up to a second when another link of the host
//! changed within the last (`linkwatch_nextevent` in net/core/link_watch.c; 925 ms were measured with a TAP, never with a veth, which the
//! kernel exempts). The counters change with the carrier, and are read without a lock.
//!
//! Law: a link that went down is reported down at least once, however soon it came back.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::net::if_::if_indextoname;

use super::link_state::{DownReason, LinkReport};

/// Interval at which the driver is queried although nothing changed, and at which files that are missing are looked for again.
const AGAIN: Duration = Duration::from_secs(1);

/// Carrier of an interface.
#[derive(Debug)]
pub struct Carrier {
    /// Folder with a folder for each interface.
    net: PathBuf,
    /// Index of the interface.
    interface: u32,
    files: Option<Files>,
    /// Time from which missing files are looked for again.
    missing_until: Option<Instant>,
    seen: Option<Seen>,
}

/// Open files of an interface in sysfs; they stay valid when it is renamed, and fail once it is gone.
#[derive(Debug)]
struct Files {
    carrier: File,
    changes: File,
    downs: File,
}

/// Counters and link as last read.
#[derive(Debug, Clone, Copy)]
struct Seen {
    changes: u64,
    downs: u64,
    report: LinkReport,
    /// Time of the next query of the driver.
    due: Instant,
}

impl Carrier {
    /// Returns the carrier of the interface with this index, in the network namespace of this process.
    #[must_use]
    pub fn of(interface: u32) -> Carrier {
        Carrier::under(Path::new("/sys/class/net"), interface)
    }

    fn under(net: &Path, interface: u32) -> Carrier {
        Carrier {
            net: net.to_owned(),
            interface,
            files: None,
            missing_until: None,
            seen: None,
        }
    }

    /// Returns the link. `driver` is called once a second, when the carrier changed, and always where sysfs does not show the interface.
    pub(super) fn report(
        &mut self,
        now: Instant,
        driver: impl FnOnce() -> LinkReport,
    ) -> LinkReport {
        self.open(now);
        let files = self.files.as_ref();
        let Some((files, changes)) = files.and_then(|files| Some((files, read(&files.changes)?)))
        else {
            (self.files, self.seen) = (None, None);
            return driver();
        };
        if let Some(seen) = self
            .seen
            .filter(|seen| seen.changes == changes && now < seen.due)
        {
            return seen.report;
        }
        let downs = read(&files.downs).unwrap_or_default();
        let fell = self
            .seen
            .is_some_and(|seen| seen.report.up && seen.downs != downs);
        // Not readable while the interface is administratively down.
        let carries = read(&files.carrier) == Some(1);
        let report = if fell || !carries {
            LinkReport::down(DownReason::Link)
        } else {
            driver()
        };
        // A link on its way up is looked at in each turn.
        let settled = report.up == carries;
        self.seen = Some(Seen {
            changes,
            downs,
            report,
            due: if settled { now + AGAIN } else { now },
        });
        report
    }

    fn open(&mut self, now: Instant) {
        let waits = self.missing_until.is_some_and(|until| now < until);
        if self.files.is_some() || waits {
            return;
        }
        self.files = Files::open(&self.net, self.interface);
        self.missing_until = Some(now + AGAIN);
    }
}

impl Files {
    /// Opens the files of an interface, if the folder shows the network namespace of this process.
    fn open(net: &Path, interface: u32) -> Option<Files> {
        let name = if_indextoname(interface).ok()?;
        let folder = net.join(name.to_str().ok()?);
        let file = |name: &str| File::open(folder.join(name)).ok();
        (read(&file("ifindex")?)? == u64::from(interface)).then_some(())?;
        Some(Files {
            carrier: file("carrier")?,
            changes: file("carrier_changes")?,
            downs: file("carrier_down_count")?,
        })
    }
}

/// Reads a number from the beginning of a file.
fn read(file: &File) -> Option<u64> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(text.get(..length)?)
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
#[path = "carrier_tests.rs"]
mod tests;
