//! Hugepages of the kernel, read from sysfs, and those held by files of dead processes, read from hugetlbfs.
//!
//! Read-only: it does not reserve, mount or remove anything.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Page size and number of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugepagePool {
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Number of pages reserved in total.
    pub total: u64,
    /// Number of pages that no process has mapped.
    pub free: u64,
}

/// Returns all page sizes this kernel offers, smallest first; empty when it offers none.
#[must_use]
pub fn hugepages() -> Vec<HugepagePool> {
    read(Path::new("/sys/kernel/mm/hugepages"))
}

/// Returns the bytes of free hugepages of every size: zero means that EAL needs `--no-huge`.
#[must_use]
pub fn hugepages_available() -> u64 {
    hugepages()
        .iter()
        .map(|pool| pool.page_bytes.saturating_mul(pool.free))
        .sum()
}

/// Returns the bytes of hugepages in files that a DPDK process left behind when it ended without cleaning up (SIGKILL, out of memory). The
/// kernel counts them as used; EAL removes them when it starts, whatever their prefix, unless it is started with `--in-memory`.
#[must_use]
pub fn hugepages_stale() -> u64 {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    hugetlbfs(&mounts).map(stale).sum()
}

/// Returns true if a hugetlbfs is mounted. Without one EAL has no hugepages, however many the kernel has reserved, unless it is started with
/// `--in-memory`.
#[must_use]
pub fn hugepages_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    hugetlbfs(&mounts).next().is_some()
}

/// Returns the mount points of hugetlbfs in `/proc/self/mounts`.
fn hugetlbfs(mounts: &str) -> impl Iterator<Item = &Path> {
    mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (folder, kind) = (fields.next()?, fields.next()?);
        (kind == "hugetlbfs").then(|| Path::new(folder))
    })
}

/// Returns the bytes of files in a folder that have EAL's name for pages, `*map_*`, and are not locked, which is how EAL recognises leftovers.
fn stale(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("map_"))
        .filter_map(|entry| {
            let file = File::open(entry.path()).ok()?;
            // A process that uses the file shares its lock, so only an exclusive one shows that nobody does. Closing the file ends it.
            file.try_lock().ok()?;
            let metadata = file.metadata().ok()?;
            metadata
                .is_file()
                .then(|| metadata.blocks().saturating_mul(BLOCK))
        })
        .sum()
}

/// Bytes of a block as `stat` counts them.
const BLOCK: u64 = 512;

fn read(root: &Path) -> Vec<HugepagePool> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut pools: Vec<_> = entries
        .flatten()
        .filter_map(|entry| pool(&entry.path()))
        .collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

/// Reads a folder named `hugepages-2048kB` with its counters.
fn pool(folder: &Path) -> Option<HugepagePool> {
    let kilobytes: u64 = folder
        .file_name()?
        .to_str()?
        .strip_prefix("hugepages-")?
        .strip_suffix("kB")?
        .parse()
        .ok()?;
    let count = |file: &str| {
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    Some(HugepagePool {
        page_bytes: kilobytes.checked_mul(1024)?,
        total: count("nr_hugepages")?,
        free: count("free_hugepages")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hugetlbfs_is_found_among_the_mounts() {
        let mounts =
            "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n";
        assert!(hugetlbfs(mounts).eq([Path::new("/dev/hugepages")]));
        assert_eq!(hugetlbfs("proc /hugetlbfs proc rw 0 0\n").next(), None);
    }

    #[test]
    fn reads_what_the_kernel_writes_and_skips_the_rest() {
        let root = tempfile::tempdir().unwrap();
        for (name, total, free) in [
            ("hugepages-1048576kB", "1\n", "0\n"),
            ("hugepages-2048kB", "512\n", "500\n"),
        ] {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("nr_hugepages"), total).unwrap();
            fs::write(folder.join("free_hugepages"), free).unwrap();
        }
        fs::create_dir(root.path().join("hugepages-oddkB")).unwrap();
        assert_eq!(
            read(root.path()),
            [
                HugepagePool {
                    page_bytes: 2 << 20,
                    total: 512,
                    free: 500
                },
                HugepagePool {
                    page_bytes: 1 << 30,
                    total: 1,
                    free: 0
                },
            ]
        );
    }

    #[test]
    fn files_that_nobody_locks_are_stale() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, vec![1; 1 << 20]).unwrap();
            File::open(path).unwrap()
        };
        assert_eq!(stale(folder.path()), 0);
        let dead = make("npcc-7map_0");
        assert_eq!(
            stale(folder.path()),
            dead.metadata().unwrap().blocks() * 512
        );
        let (alive, _other) = (make("npcc-8map_0"), make("notes"));
        alive.lock_shared().unwrap();
        assert_eq!(
            stale(folder.path()),
            dead.metadata().unwrap().blocks() * 512
        );
        // The check itself leaves no lock behind.
        dead.try_lock().unwrap();
    }

    #[test]
    fn a_kernel_without_hugepages_has_none() {
        assert!(read(Path::new("/nonexistent/hugepages")).is_empty());
    }
}
