//! Reports of crashes that the switch has written by itself: at most two in a time, and the last few of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// Time in which at most [`OF_BURST`] crashes are reported: a switch that cannot stay up crashes many times for one reason.
const BURST: Duration = Duration::from_secs(600);
/// The second crash may have another reason than the first; a third tells no more.
const OF_BURST: usize = 2;
/// Reports kept.
const KEPT: usize = 5;
const PREFIX: &str = "crash-";
const SUFFIX: &str = ".tar.gz";

/// Folder in which the service manager lets the switch keep files (`StateDirectory=`); none without one.
pub(super) fn folder() -> Option<PathBuf> {
    let folders = std::env::var_os("STATE_DIRECTORY")?;
    // The first of them, as systemd separates them.
    let first = folders.to_str()?.split(':').next()?;
    (!first.is_empty()).then(|| PathBuf::from(first))
}

/// How a switch has its last run's crash reported.
pub(super) fn command(config: &Path, socket: &str) -> Vec<OsString> {
    let (Some(_), Ok(program)) = (folder(), std::env::current_exe()) else {
        return Vec::new();
    };
    let arguments = ["techsupport", "--after-crash", "--socket", socket, "-c"];
    let mut all = vec![program.into_os_string()];
    all.extend(arguments.map(OsString::from));
    all.push(config.into());
    all
}

/// The reports in a folder, oldest first. Their names say when they were written.
fn all(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let names = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let is_report = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
    };
    let mut reports: Vec<PathBuf> = names.filter(is_report).collect();
    reports.sort();
    Ok(reports)
}

/// Path of a crash report; `None` where there are enough of the same burst.
pub(super) fn due(folder: &Path, stamp: &str, now: SystemTime) -> io::Result<Option<PathBuf>> {
    let times = all(folder)?
        .into_iter()
        .flat_map(|path| fs::metadata(path)?.modified());
    let recent = |time: SystemTime| now.duration_since(time).is_ok_and(|past| past < BURST);
    // One that is dated later than now says nothing.
    if times.filter(|time| recent(*time)).count() >= OF_BURST {
        return Ok(None);
    }
    let path = |mark| folder.join(format!("{PREFIX}{stamp}{mark}{SUFFIX}"));
    let first = path("");
    // A stamp counts seconds, and the second crash of a burst may come in the same one. Its name sorts behind the first.
    Ok(Some(if first.exists() { path("_2") } else { first }))
}

/// Removes the oldest, so that as many stay as are kept.
pub(super) fn thin_out(folder: &Path) -> io::Result<()> {
    let reports = all(folder)?;
    for path in reports.iter().rev().skip(KEPT) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_crashes_has_two_reports_and_the_last_five_stay() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let now = SystemTime::now();
        for n in 0..8 {
            let at = now + BURST * n;
            let path = due(folder, &format!("2026112{n}"), at).unwrap().unwrap();
            let report = fs::File::create(path).unwrap();
            report.set_modified(at).unwrap();
            let soon = at + Duration::from_secs(1);
            let second = due(folder, &format!("2026112{n}-second"), soon)
                .unwrap()
                .unwrap();
            fs::File::create(&second)
                .unwrap()
                .set_modified(soon)
                .unwrap();
            let third = at + BURST - Duration::from_secs(1);
            assert_eq!(due(folder, "x", third).unwrap(), None, "the same burst");
            fs::remove_file(second).unwrap();
            let same = due(folder, &format!("2026112{n}"), soon).unwrap();
            let name = format!("crash-2026112{n}_2.tar.gz");
            assert!(same.unwrap().ends_with(name), "in the same second");
            thin_out(folder).unwrap();
        }
        fs::write(folder.join("notes.txt"), "another's").unwrap();
        thin_out(folder).unwrap();
        let names: Vec<_> = all(folder).unwrap();
        assert_eq!(names.len(), KEPT);
        assert!(names[0].ends_with("crash-20261123.tar.gz"), "{names:?}");
        assert!(folder.join("notes.txt").exists());
    }
}
