//! Crashes of every kind: each leaves a flight recorder that explains it, one report, and nothing else; and a core file has no packets.
//!
//! `NPCC_CRASHES` is the number of crashes injected (default: each kind once). The test of the core file needs root.

use npcc_testkit::skip::skipped;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::common::crash::{Crash, Victim, children, descriptors, eal_files, signal_until_dead};
use crate::common::fifty;
use crate::common::net::{Net, python, run, two_hosts};
use crate::common::{Lab, NULL_PORTS, Running, alone, assert_success};
use npcc_testkit::wait;
use serde_json::Value;

fn victim() -> Victim {
    let lab = Lab::new();
    // With files in hugepages, as in production.
    lab.config(&NULL_PORTS.replace(", hugepages: off", ""));
    Victim::of(lab)
}

/// Returns a file of an archive as text.
fn part(archive: &Path, name: &str) -> String {
    let output = Command::new("tar")
        .arg("-xOzf")
        .arg(archive)
        .args(["--wildcards", &format!("*/{name}")])
        .output()
        .unwrap();
    assert_success(&output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn recorder(victim: &Victim, more: &[&str]) -> Value {
    let socket = victim.lab.path("switch.sock");
    let mut command = victim.lab.command(&["recorder", "--json", "--socket"]);
    let output = command.arg(socket).args(more).output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Mount of a file system on a file, unmounted at the end.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mounted(lab: &Lab) -> Disk {
        let (image, folder) = (lab.path("disk.img"), lab.path("disk"));
        fs::create_dir(&folder).unwrap();
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let (image, place) = (image.display(), folder.display());
        run(&format!("mkfs.ext4 -q {image}"));
        run(&format!("mount -o loop {image} {place}"));
        Disk(folder)
    }

    fn freeze(&self) -> Frozen<'_> {
        run(&format!("fsfreeze -f {}", self.0.display()));
        Frozen(self)
    }
}

/// Frozen file system: a killed process ends only once this is dropped.
struct Frozen<'a>(&'a Disk);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run(&format!("fsfreeze -u {}", self.0.0.display()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Earlier defect: with the socket on a disk the recorder was mapped from there, and one malformed frame stopped a worker for as long as the
/// file system was frozen, as it is while a snapshot is taken.
#[test]
fn a_frozen_file_system_under_the_socket_stops_no_worker() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let space = net.space("sw");
    let lab = fifty::lab(&space);
    let disk = Disk::mounted(&lab);
    let socket = disk.0.join("switch.sock");
    let config = format!("telemetry: {{ socket: {} }}\n", socket.display());
    lab.config(&(fifty::CONFIG.to_owned() + &config));
    let mut switch = lab.start(&[]);
    let ask = |words: &[&str]| lab.ask_by(socket.to_str().unwrap(), words);
    wait::until("an answer", wait::LONG, || {
        ask(&["show", "ports"]).status.success()
    });
    assert_eq!(fifty::passed(&space), 50);
    let frozen = disk.freeze();
    for _ in 0..3 {
        // An IPv4 packet whose header is longer than it.
        let send = "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('hdc', 0)); \
                    s.send(bytes.fromhex('020000000101020000000103' + '0800' + '4f') + bytes(45))";
        assert_success(&python(&space, send).output().unwrap());
        assert_eq!(fifty::passed(&space), 50, "with a malformed frame recorded");
    }
    assert!(ask(&["show", "ports"]).status.success());
    drop(frozen);
    let recorder = ask(&["recorder"]);
    assert_success(&recorder);
    let text = String::from_utf8_lossy(&recorder.stdout).into_owned();
    assert!(text.matches("ip_header").count() >= 3, "{text}");
    terminate(&mut switch);
    let after = ask(&["recorder"]);
    assert!(String::from_utf8_lossy(&after.stdout).contains("ended in order"));
    assert!(disk.0.join("switch.recorder").exists(), "beside the socket");
}

/// Asserts that the recorder explains a crash.
fn is_signalled(how: Crash, recorder: &Value) {
    let ending = match how {
        Crash::Panic(_) => "panicked",
        _ => "unknown",
    };
    assert_eq!(recorder["ending"], ending, "{how:?}: {recorder:#}");
    let lines = recorder["lines"].as_array().unwrap();
    let says = |level: &str, text: &str| {
        lines.iter().any(|line| {
            line["level"] == level && line["text"].as_str().is_some_and(|all| all.contains(text))
        })
    };
    let still = |name: &str| {
        let mut threads = recorder["threads"].as_array().unwrap().iter();
        let one = threads.find(|thread| thread["name"].as_str().unwrap().starts_with(name));
        one.unwrap()["still_s"].as_f64().unwrap()
    };
    // One that was never recorded has been still since 1970.
    let moved = |name: &str| still(name) < wait::LONG.as_secs_f64();
    match how {
        Crash::Panic(place) => assert!(says("panic", place), "{how:?}: {recorder:#}"),
        Crash::Stuck(place) => {
            let (stuck, well) = match place {
                "worker-stuck" => ("worker on core", "control thread"),
                "control-stuck" => ("control thread", "link thread"),
                _ => ("link thread", "worker on core"),
            };
            assert!(says("error", "has not moved for 1 s"), "{recorder:#}");
            assert!(still(stuck) > 0.9, "{stuck}: {recorder:#}");
            for well in [well, "management"] {
                let later = moved(well) && still(well) < still(stuck);
                assert!(later, "{well}: {recorder:#}");
            }
        }
        Crash::Abort | Crash::Signal(_) => {
            assert!(moved("management") && moved("worker on core"));
        }
    }
}

fn terminate(switch: &mut Running) {
    switch.signal("TERM");
    assert!(switch.wait().unwrap().success());
}

/// Runs one crash, the start after it, and a clean end.
fn crash_and_start(how: Crash) {
    let victim = victim();
    let files = eal_files();
    // Descriptors of a switch that never crashed.
    let mut first = victim.start(None, true);
    victim.lab.answers();
    let pid = first.id();
    let held = descriptors(pid);
    terminate(&mut first);
    assert!(victim.reports().is_empty(), "an end in order is no crash");

    victim.crash(how);
    let mut second = victim.start(None, true);
    victim.lab.answers();
    let pid = second.id();
    victim.until("a report", || !victim.reports().is_empty());
    victim.until("no process is left", || children(pid).is_empty());
    victim.until("descriptors are left", || descriptors(pid) <= held);
    let reports = victim.reports();
    assert_eq!(reports.len(), 1, "{how:?}: {reports:?}");
    assert_eq!(reports[0].metadata().unwrap().mode() & 0o777, 0o600);
    let signalled: Value =
        serde_json::from_str(&part(&reports[0], "recorder-previous.json")).unwrap();
    is_signalled(how, &signalled);
    assert_eq!(signalled["pid"], recorder(&victim, &["--previous"])["pid"]);
    assert!(part(&reports[0], "show/ports.json").contains("wan0"));
    terminate(&mut second);
    assert_eq!(recorder(&victim, &[])["ending"], "ordered");
    assert_eq!(victim.reports().len(), 1);
    let names = victim.names();
    let names: Vec<_> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with("core"))
        .collect();
    let wanted = [
        "notify",
        "state",
        "stderr",
        "switch.recorder",
        "switch.recorder.previous",
        "switch.yaml",
    ];
    assert_eq!(names, wanted, "{how:?}");
    let new: Vec<String> = eal_files().difference(&files).cloned().collect();
    // EAL keeps its folder; a file in hugepages would keep the pages.
    assert!(!new.iter().any(|name| name.contains("map_")), "{new:?}");
}

#[test]
fn each_crash_leaves_a_recorder_that_explains_it_one_report_and_nothing_else() {
    let _alone = alone();
    let crashes = std::env::var("NPCC_CRASHES").ok();
    let crashes = crashes.map_or(Crash::ALL.len(), |number| number.parse().unwrap());
    for how in Crash::ALL.iter().cycle().take(crashes) {
        println!("{how:?}");
        crash_and_start(*how);
    }
}

/// Ends a switch by a first signal, whose stop hangs for a minute, and waits until it does.
fn stop_that_hangs(victim: &Victim, switch: &Running) {
    let hangs = || victim.said().matches("`stop` hangs").count();
    let before = hangs();
    switch.signal("TERM");
    victim.until("the stop hangs", || hangs() > before);
}

#[test]
fn an_end_by_a_second_signal_is_reported_and_is_no_crash() {
    let _alone = alone();
    let victim = victim();
    for (second, code) in [("TERM", 143), ("INT", 130)] {
        let mut switch = victim.start(Some("stop"), true);
        victim.lab.answers();
        stop_that_hangs(&victim, &switch);
        signal_until_dead(&mut switch, second);
        assert_eq!(switch.wait().unwrap().code(), Some(code));
        assert_eq!(recorder(&victim, &[])["ending"], "second-signal");
    }
    let mut next = victim.start(None, true);
    victim.lab.answers();
    assert_eq!(
        recorder(&victim, &["--previous"])["ending"],
        "second-signal"
    );
    terminate(&mut next);
    let signalled = "note: the last run was ended by a second signal before it had stopped";
    assert_eq!(
        victim.said().matches(signalled).count(),
        2,
        "{}",
        victim.said()
    );
    assert!(!victim.said().contains("without a word"));
    assert!(victim.reports().is_empty(), "{:?}", victim.reports());
    // A stop that hangs and is killed from outside is examined as a crash.
    let mut hung = victim.start(Some("stop"), true);
    victim.lab.answers();
    stop_that_hangs(&victim, &hung);
    signal_until_dead(&mut hung, "KILL");
    assert_eq!(recorder(&victim, &[])["ending"], "unknown");
}

#[test]
fn a_burst_of_crashes_has_reports_of_the_first_two() {
    let _alone = alone();
    let victim = victim();
    victim.crash(Crash::Panic("manage"));
    let first = recorder(&victim, &[]);
    for _ in 0..3 {
        let mut next = victim.start(None, true);
        victim.lab.answers();
        victim.until("a report", || !victim.reports().is_empty());
        let pid = next.id();
        victim.until("no process is left", || children(pid).is_empty());
        signal_until_dead(&mut next, "KILL");
    }
    let reports = victim.reports();
    assert_eq!(reports.len(), 2, "{reports:?}");
    let signalled: Value =
        serde_json::from_str(&part(&reports[0], "recorder-previous.json")).unwrap();
    assert_eq!(signalled["pid"], first["pid"]);
    let said = victim.said();
    assert!(said.contains("note: the last run panicked: `npcc-switch recorder --previous`"));
    assert!(
        said.contains("note: the last run ended without a word"),
        "{said}"
    );
}

/// Marker of 16 octets that no program contains by chance.
const MARKER: &[u8; 16] = b"NpccPayload#7351";

/// Counts the markers in a reader's bytes.
fn marks(mut from: impl Read) -> usize {
    let mut found = 0;
    let mut kept = Vec::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece) else {
            return found;
        };
        kept.extend_from_slice(&piece[..length]);
        found += kept
            .windows(MARKER.len())
            .filter(|window| window == MARKER)
            .count();
        let rest = kept.len().min(MARKER.len() - 1);
        kept.drain(..kept.len() - rest);
    }
}

/// Counts the markers in the mappings of a process that a core file leaves out.
fn marks_left_out(pid: u32) -> usize {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut range = (0, 0);
    let mut found = 0;
    for line in smaps.lines() {
        let words = line.split(' ').next().and_then(|word| word.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = words.map(|(a, b)| (number(a), number(b))) {
            range = (start, end);
        }
        let left_out = line.strip_prefix("VmFlags: ").is_some_and(|flags| {
            let has = |flag| flags.split(' ').any(|one| one == flag);
            has("dd") && has("wr") && !has("io")
        });
        if left_out {
            memory.seek(SeekFrom::Start(range.0)).unwrap();
            found += marks((&memory).take(range.1 - range.0));
        }
    }
    found
}

/// Returns a core file without its notes: the registers among them hold what was copied last, a few hundred octets at most.
fn memory_in(core: &Path) -> Vec<u8> {
    const NOTE: u32 = 4;
    let mut bytes = fs::read(core).unwrap();
    let number = |bytes: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
    };
    let headers = number(&bytes, 32);
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    for header in (0..count).map(|index| headers + index * 56) {
        let kind = u32::from_le_bytes(bytes[header..header + 4].try_into().unwrap());
        let (offset, size) = (number(&bytes, header + 8), number(&bytes, header + 32));
        if kind == NOTE {
            assert!(size < 1 << 20, "{size}");
            bytes[offset..offset + size].fill(0);
        }
    }
    bytes
}

fn no_packets_in_the_core(dpdk: &str) {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with(['|', '/']) {
        skipped(
            "core",
            "cores in the working directory (sysctl kernel.core_pattern=core)",
        );
        return;
    }
    let _alone = alone();
    let net = two_hosts(1500, [2, 3]);
    let lab = Lab::with(&format!(
        "version: 1
dpdk: {dpdk}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", addresses: [10.0.2.1/24] }}
neighbors:
  - {{ address: 10.0.1.2, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.3, port: wan0, mac: \"02:00:00:00:02:03\" }}
buffer: {{ pool: 8MB }}
qos: {{ profile: lossy }}
",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan")
    ));
    let victim = Victim::of(lab);
    let mut switch = victim.start(None, false);
    victim.lab.answers();
    let child = switch.0.as_mut().unwrap();
    run(&format!("prlimit --pid {} --core=unlimited", child.id()));
    let pattern: String = MARKER.iter().map(|byte| format!("{byte:02x}")).collect();
    let space = net.space("dc");
    run(&format!(
        "ip netns exec {space} ping -q -c 20 -i 0.01 -s 1000 -p {pattern} 10.0.2.3"
    ));
    // Otherwise the core would prove nothing.
    let there = marks_left_out(child.id());
    assert!(
        there > 30,
        "no ping is in packet memory, which has the marker 60 times: {there}"
    );
    signal_until_dead(child, "ABRT");
    let core = fs::read_dir(victim.lab.dir.path()).unwrap().flatten();
    let core = core.map(|entry| entry.path()).find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("core"))
    });
    let core = core.unwrap_or_else(|| panic!("no core"));
    let size = core.metadata().unwrap().blocks() * 512;
    println!("core: {} KiB; marks in packet memory: {there}", size >> 10);
    assert!(size < 64 << 20, "{size}");
    assert_eq!(marks(memory_in(&core).as_slice()), 0);
    let output = victim
        .lab
        .command(&["techsupport", "-o", "all.tar.gz", "--socket"]);
    let mut output = output;
    assert_success(&output.arg(victim.lab.path("switch.sock")).output().unwrap());
    let manifest = part(&victim.lab.path("all.tar.gz"), "MANIFEST");
    let core = core.display().to_string();
    assert!(manifest.contains(&core), "{manifest}");
}

#[test]
fn a_core_is_small_and_holds_no_packet_from_hugepages() {
    no_packets_in_the_core("{ eal_args: [\"--no-pci\", \"--in-memory\"] }");
}

#[test]
fn a_core_is_small_and_holds_no_packet_from_ordinary_pages() {
    no_packets_in_the_core("{ eal_args: [\"--no-pci\"], hugepages: off }");
}
