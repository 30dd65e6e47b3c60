//! The core of a run that crashed: the newest one of ours, from systemd's store or where the kernel puts it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folder in which systemd-coredump keeps cores.
const STORE: &str = "/var/lib/systemd/coredump";
/// How much of a core tells whose it is: its notes stand at its beginning.
const BEGINNING: u64 = 256 << 10;

/// Folder of cores, and the prefix of their names.
fn places(pattern: &str, ran_in: &Path) -> (PathBuf, String) {
    let pattern = pattern.trim();
    if pattern.starts_with('|') {
        return (PathBuf::from(STORE), "core.npcc-switch.".to_owned());
    }
    // Where the kernel fills something in, the name may be anything from there on.
    let known = pattern.split('%').next().unwrap_or_default();
    let path = ran_in.join(known);
    if known.ends_with('/') || known.is_empty() {
        return (path, String::new());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(ran_in);
    (folder.to_owned(), name.into_owned())
}

/// Returns true if a file is a core of this program, as the kernel writes it; of a compressed one its name says so.
fn is_ours(path: &Path) -> bool {
    if path.starts_with(STORE) {
        return true;
    }
    let mut beginning = Vec::new();
    let file = fs::File::open(path);
    let read = file.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    // ELF, and its type at byte 16: a core.
    let is_core = beginning.starts_with(b"\x7fELF") && beginning.get(16) == Some(&4);
    let name = b"npcc-switch";
    read.is_ok() && is_core && beginning.windows(name.len()).any(|window| window == name)
}

/// The newest core of a run that began at `since` in the folder `ran_in`.
///
/// # Errors
/// Why there is none.
pub(super) fn newest(since: SystemTime, ran_in: &Path) -> Result<PathBuf, String> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern");
    let pattern = pattern.map_err(|error| format!("kernel.core_pattern: {error}"))?;
    newest_by(&pattern, since, ran_in)
}

fn newest_by(pattern: &str, since: SystemTime, ran_in: &Path) -> Result<PathBuf, String> {
    let (folder, start) = places(pattern, ran_in);
    let entries = fs::read_dir(&folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    let cores = entries.flatten().filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let name = entry.file_name();
        let written = metadata.modified().ok().filter(|time| *time >= since)?;
        name.to_str()?
            .starts_with(&start)
            .then_some((written, entry.path()))
    });
    let ours = cores.filter(|(_, path)| is_ours(path));
    let newest = ours.max().map(|(_, path)| path);
    newest.ok_or_else(|| {
        format!(
            "no core of the last run in {} (kernel.core_pattern, LimitCORE)",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_newest_core_of_ours_is_found_where_the_kernel_puts_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let core = |name: &str, program: &str, age: u64| {
            let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0".to_vec();
            bytes.extend(program.as_bytes());
            let path = folder.join(name);
            fs::write(&path, bytes).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(time).unwrap();
        };
        core("core.1", "npcc-switch run", 30);
        core("core.2", "npcc-switch run", 10);
        core("core.3", "another", 5);
        core("other", "npcc-switch run", 1);
        fs::write(folder.join("core.txt"), "about npcc-switch").unwrap();
        let since = |age| SystemTime::now() - Duration::from_secs(age);
        let found = newest_by("core.%p\n", since(60), folder).unwrap();
        assert!(found.ends_with("core.2"), "{found:?}");
        let absolute = format!("{}/core", folder.display());
        let found = newest_by(&absolute, since(60), Path::new("/nowhere")).unwrap();
        assert!(found.ends_with("core.2"), "{found:?}");
        let why = newest_by("core", since(9), folder).unwrap_err();
        assert!(why.contains("LimitCORE"), "{why}");
        let piped = places("|/lib/systemd/systemd-coredump %P %u", folder);
        assert_eq!(piped.0, Path::new(STORE));
    }
}
