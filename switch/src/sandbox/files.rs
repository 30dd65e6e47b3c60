//! Files of a running switch: those that Landlock lets it open, where the kernel has Landlock.
//!
//! Descriptors that are open already are not restricted. Landlock says nothing about sockets with a path; from Linux 6.12 on it refuses
//! connections to abstract sockets of others.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    Scope, path_beneath_rules,
};

/// Latest interface of Landlock that these rules were tried with; the rights that a kernel does not know are left out.
const TRIED: ABI = ABI::V6;

/// Folders whose files may be read, besides those of the configuration.
const READ: [&str; 3] = ["/etc", "/proc", "/sys"];

/// Files and folders in which files may be written and devices used: sysctls, hugepages that DPDK takes later, devices of cards and TAPs.
const WRITTEN: [&str; 5] = [
    "/proc/sys/net",
    "/dev/hugepages",
    "/dev/infiniband",
    "/dev/net",
    "/dev/vfio",
];

/// Places that differ from switch to switch.
#[derive(Debug)]
pub(super) struct Places<'a> {
    /// Configuration file, which a reload reads.
    pub(super) config: &'a Path,
    /// Management sockets, which are removed at the end; the flight recorder is left beside the first.
    pub(super) sockets: [PathBuf; 2],
    /// Path of the service manager's socket, as its variable has it.
    pub(super) notify: Option<&'a OsStr>,
}

/// Returns the rules.
///
/// # Errors
/// The kernel refuses the ruleset; one without Landlock gives no error.
pub(super) fn rules(places: &Places<'_>) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(TRIED))?;
    // A manager whose socket is abstract must be reached.
    let is_abstract = |path: &OsStr| path.as_bytes().first() == Some(&b'@');
    let rules = if places.notify.is_some_and(is_abstract) {
        rules
    } else {
        rules.scope(Scope::AbstractUnixSocket)?
    };
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let used = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::IoctlDev
        | AccessFs::MakeReg
        | AccessFs::RemoveFile;
    rules
        .create()?
        .add_rules(path_beneath_rules(READ, read))?
        .add_rules(path_beneath_rules(folders(places.config), read))?
        .add_rules(path_beneath_rules(WRITTEN, used))?
        .add_rules(path_beneath_rules(
            places.sockets.iter().flat_map(|path| path.parent()),
            read | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile,
        ))
}

/// Returns the descriptor of a ruleset; `None` where the kernel has no Landlock.
pub(super) fn descriptor(rules: RulesetCreated) -> Option<OwnedFd> {
    rules.into()
}

/// Returns the folders of a file: that of its name, as an editor writes a new file, and that of the file behind a link.
fn folders(file: &Path) -> Vec<PathBuf> {
    let real = file.canonicalize().ok();
    let all = [Some(file.to_owned()), real].into_iter().flatten();
    all.filter_map(|path| Some(path.parent()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::ErrorKind;

    use super::*;

    /// Law: the configuration is read, and written anew by an editor; other files are not read, and none is written but in the sockets'
    /// folder.
    #[test]
    fn a_file_is_opened_where_the_switch_needs_it_and_nowhere_else() {
        let [etc, run, home] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let config = etc.path().join("switch.yaml");
        let other = home.path().join("secret");
        for path in [&config, &other] {
            fs::write(path, "text").unwrap();
        }
        let (made, socket) = (run.path().join("new"), run.path().join("s.sock"));
        let places = Places {
            config: &config,
            sockets: [socket.clone(), socket.clone()],
            notify: None,
        };
        let rules = rules(&places).unwrap();
        let kind = |result: Result<(), std::io::Error>| result.map_err(|error| error.kind());
        let tries = || {
            let written = config.with_extension("new");
            [
                kind(File::open(&config).map(drop)),
                kind(File::open("/proc/self/status").map(drop)),
                kind(fs::write(&made, "").and_then(|()| fs::remove_file(&made))),
                kind(File::open(&other).map(drop)),
                kind(fs::write(&written, "")),
                kind(fs::create_dir(run.path().join("folder"))),
            ]
        };
        // Landlock is a thread's own.
        let tried = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let status = rules.restrict_self().unwrap();
                (tries(), status.ruleset)
            });
            thread.join().unwrap()
        });
        let denied = Err(ErrorKind::PermissionDenied);
        let expected = [Ok(()), Ok(()), Ok(()), denied, denied, denied];
        if tried.1 == landlock::RulesetStatus::NotEnforced {
            npcc_testkit::skip::skipped("Landlock", "a kernel with Landlock");
            return;
        }
        assert_eq!(tried.0, expected);
        assert_eq!(tries()[3], Ok(()), "another thread is not restricted");
    }

    /// Law: a file that is reached by a link is read where it lies.
    #[test]
    fn the_folder_behind_a_link_is_one_of_the_configurations() {
        let [etc, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let real = data.path().join("switch.yaml");
        fs::write(&real, "").unwrap();
        let link = etc.path().join("switch.yaml");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let found = folders(&link);
        let data = data.path().canonicalize().unwrap();
        assert_eq!(found, [etc.path().to_owned(), data]);
    }
}
