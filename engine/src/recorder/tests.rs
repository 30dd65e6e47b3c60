use super::*;
use crate::recorder::place;
use crate::recorder::start::{About, Recorder, keep_previous};
use crate::store::Store;
use npcc_heap::records::Ring;
use npcc_pipeline::capture::Kind;
use npcc_pipeline::units::{Nanos, PortId, WorkerId};

/// Returns the words of a recorder.
fn words(path: &Path) -> Vec<u64> {
    records::words_of(&std::fs::read(path).unwrap()).collect()
}

/// Writes a malformed frame as a worker does.
fn keep(ring: &Ring, (worker, port, reason): (u8, u8, DropReason), frame: &[u8], now: u64) {
    let event = Event {
        capture: 0,
        trace: 0,
        kind: Kind::Dropped,
        reason: Some(reason),
        ingress: Some(PortId(port)),
        egress: None,
        priority: None,
        worker: WorkerId(worker),
        flags: 0,
        len: frame.len().try_into().unwrap(),
        time: Nanos(now),
        depth: 0,
        notes: Default::default(),
    };
    let kept = &frame[..frame.len().min(SNAPLEN)];
    ring.push(records::words_of(&[&event.encode(), kept].concat()));
}

/// Returns a folder in memory, where the recorder lies beside the socket.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Returns a folder on disk, if the sources lie there.
fn on_disk() -> tempfile::TempDir {
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../target");
    tempfile::tempdir_in(target).unwrap()
}

fn begun(folder: &Path) -> (std::path::PathBuf, Recorder) {
    let socket = folder.join("switch.sock");
    let ports = ["dc0", "wan0"].map(str::to_owned);
    let about = About {
        version: "1.2.3",
        ports: &ports,
        workers: 2,
        time_scale: 2.0,
    };
    let recorder = Recorder::begin(&socket, &about, &Store::default()).unwrap();
    (socket, recorder)
}

#[test]
fn what_was_recorded_is_read_in_order_while_it_runs_and_after_its_end() {
    let folder = in_memory();
    let (socket, recorder) = begun(folder.path());
    let [first, second, none] = [0, 1, 2].map(|worker| recorder.frames(WorkerId(worker)));
    assert!(none.is_none() && recorder.malformed(WorkerId(2)).is_none());
    let (first, second) = (first.unwrap(), second.unwrap());
    keep(&second, (1, 1, DropReason::Runt), &[0xab; 3], 2_000);
    keep(&first, (0, 0, DropReason::IpHeader), &[0xcd; 200], 1_000);
    let worker = recorder.beat("worker on core 1").unwrap();
    let manager = recorder.beat("management").unwrap();
    let now = crate::recorder::beats::wall();
    worker.write(5, now);
    manager.write(1, now + 3_000_000_000);
    let reading = file(&place::beside(&socket)).unwrap();
    assert_eq!((reading.version.as_str(), reading.torn), ("1.2.3", 0));
    assert_eq!(reading.pid, u64::from(std::process::id()));
    assert_eq!(reading.ending, Ending::Unknown);
    let lines: Vec<_> = reading
        .lines
        .iter()
        .filter(|line| line.kind == "frame")
        .collect();
    assert_eq!(lines[0].text, "worker 0, dc0: ip_header, 200 bytes");
    assert_eq!(lines[1].text, "worker 1, wan0: runt, 3 bytes");
    assert_eq!(
        (lines[0].ns, lines[1].ns),
        (2_000, 4_000),
        "the clock is dilated"
    );
    assert_eq!(lines[1].bytes.as_deref(), Some("ababab"));
    assert_eq!(lines[0].bytes.as_ref().unwrap().len(), 256);
    let names: Vec<_> = reading
        .threads
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["worker on core 1", "management"]);
    assert_eq!((reading.threads[0].loops, reading.threads[1].loops), (5, 1));
    assert!((reading.threads[0].still_s - 3.0).abs() < 1e-6);
    let text = reading.to_string();
    assert!(
        text.contains("worker on core 1                      5  "),
        "{text}"
    );

    recorder.end();
    drop((recorder, first, second, worker, manager));
    assert_eq!(
        keep_previous(&socket, &Store::default()),
        Some(Ending::Ordered)
    );
    assert_eq!(
        keep_previous(&socket, &Store::default()),
        None,
        "there is none any more"
    );
    let kept = file(&place::previous(&socket)).unwrap();
    assert_eq!(kept.lines, reading.lines);
}

#[test]
fn a_run_that_a_second_signal_ended_is_no_crash_but_a_panic_before_it_is() {
    let folder = in_memory();
    let (socket, recorder) = begun(folder.path());
    let ending = |changes: &[(Head, u64)]| {
        let mut all = words(&place::beside(&socket));
        for (head, word) in changes {
            all[*head as usize] = *word;
        }
        Reading::of(&all).unwrap().ending
    };
    assert_eq!(ending(&[]), Ending::Unknown);
    assert_eq!(ending(&[(Head::Signal, 15)]), Ending::SecondSignal);
    let panicked = [(Head::Signal, 15), (Head::Panicked, 7)];
    assert_eq!(ending(&panicked), Ending::Panicked);
    let ended = [(Head::Signal, 15), (Head::Ended, 7)];
    assert_eq!(ending(&ended), Ending::Ordered);
    drop(recorder);
    let crashes = [Ending::Panicked, Ending::Unknown];
    let all = [
        Ending::Ordered,
        Ending::SecondSignal,
        crashes[0],
        crashes[1],
    ];
    assert_eq!(
        all.map(Ending::is_crash),
        [false, false, true, true],
        "{all:?}"
    );
}

#[test]
fn what_is_no_recorder_is_refused_and_another_versions_records_are_left_to_it() {
    let folder = in_memory();
    let (socket, _recorder) = begun(folder.path());
    let words = words(&place::beside(&socket));
    assert!(Reading::of(&words).is_ok());
    for place in [Head::Version, Head::Hash] {
        let mut other = words.clone();
        other[place as usize] += 1;
        let reading = Reading::of(&other).unwrap();
        assert_eq!((reading.lines.len(), reading.ending), (0, Ending::Unknown));
        let text = reading.to_string();
        assert!(
            text.contains("are of npcc-switch 1.2.3, and this version"),
            "{text}"
        );
    }
    assert!(matches!(Reading::of(&[]), Err(ReadError::Foreign)));
    assert!(matches!(Reading::of(&[0; 10_000]), Err(ReadError::Foreign)));
}

#[test]
fn a_run_of_an_older_version_tells_its_ending_and_its_threads() {
    let folder = in_memory();
    let (socket, recorder) = begun(folder.path());
    drop((recorder.beat("control thread"), recorder));
    let path = place::beside(&socket);
    let mut words = words(&path);
    words[Head::Version as usize] = VERSION - 1;
    words[Head::Ended as usize] = 0;
    words[Head::Panicked as usize] = 7;
    let octets: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&path, octets).unwrap();
    assert_eq!(
        keep_previous(&socket, &Store::default()),
        Some(Ending::Panicked)
    );
    let kept = file(&place::previous(&socket)).unwrap();
    assert_eq!(kept.version, "1.2.3");
    assert_eq!(kept.threads[0].name, "control thread");
    std::fs::write(&path, [1; 999]).unwrap();
    assert_eq!(
        keep_previous(&socket, &Store::default()),
        None,
        "it is no recorder"
    );
}

proptest::proptest! {
    /// A crash of the machine may leave any words in the file.
    #[test]
    fn no_words_make_the_reader_panic(
        noise in proptest::collection::vec(proptest::num::u64::ANY, 0..2_000),
        places in proptest::collection::vec(0..2_000usize, 0..50),
    ) {
        let folder = in_memory();
        let (socket, recorder) = begun(folder.path());
        keep(&recorder.frames(WorkerId::FIRST).unwrap(), (0, 0, DropReason::Runt), &[1], 1);
        let mut words = words(&place::beside(&socket));
        for (place, word) in places.iter().zip(&noise) {
            if *place > Head::Hash as usize {
                words[*place] = *word;
            }
        }
        let _ = Reading::of(&words).map(|reading| reading.to_string());
        let _ = Reading::of(&noise);
    }
}

/// Earlier defect: the recorder was mapped from whatever file system the socket lay on, and a frozen one stopped the workers.
#[test]
fn a_running_recorder_is_in_memory_and_an_ended_one_beside_the_socket() {
    for folder in [in_memory(), on_disk()] {
        let (socket, recorder) = begun(folder.path());
        let (path, reading) = place::find(&socket).unwrap();
        assert!(place::is_in_memory(&path), "{}", path.display());
        assert_eq!(reading.ending, Ending::Unknown);
        let mode = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600
        );
        drop(recorder);
        let (path, reading) = place::find(&socket).unwrap();
        assert_eq!(
            (&path, reading.ending),
            (&place::beside(&socket), Ending::Ordered)
        );
        assert!(!place::shared(&socket).exists());
        let kept = keep_previous(&socket, &Store::default());
        assert_eq!(kept, Some(Ending::Ordered));

        // A killed run: the memory stays, and an older file beside the socket is not taken for it.
        let older = std::fs::read(place::previous(&socket)).unwrap();
        let (_, recorder) = begun(folder.path());
        std::mem::forget(recorder);
        if place::shared(&socket).exists() {
            std::fs::write(place::beside(&socket), older).unwrap();
        }
        let kept = keep_previous(&socket, &Store::default());
        assert_eq!(kept, Some(Ending::Unknown));
        let kept = place::read(&place::previous(&socket)).unwrap();
        assert_eq!(kept.ending, Ending::Unknown);
        assert!(place::find(&socket).is_err(), "nothing else is left");
    }
}

/// `/dev/shm` is open to every user: what another put there under the recorder's name is neither followed nor read.
#[test]
fn what_another_user_put_in_place_of_a_recorder_is_not_read() {
    let folder = in_memory();
    let (socket, recorder) = begun(folder.path());
    drop(recorder);
    let (prey, shared) = (folder.path().join("prey"), place::shared(&socket));
    std::fs::rename(place::beside(&socket), &prey).unwrap();
    std::os::unix::fs::symlink(&prey, &shared).unwrap();
    assert!(place::find(&socket).is_err(), "a link");
    assert_eq!(keep_previous(&socket, &Store::default()), None);
    assert!(!shared.exists() && prey.exists());

    std::fs::copy(&prey, &shared).unwrap();
    assert!(place::find(&socket).is_ok(), "a file of this user's");
    let nobody = nix::unistd::Uid::from_raw(65_534);
    nix::unistd::chown(&shared, Some(nobody), None).unwrap();
    assert!(place::find(&socket).is_err(), "a file of another user's");
    assert_eq!(keep_previous(&socket, &Store::default()), None);
    assert!(!shared.exists() && !place::previous(&socket).exists());
}

/// The service manager's store has the memory where there is no tmpfs.
#[test]
fn a_recorder_in_the_store_is_kept_by_the_next_start() {
    let folder = in_memory();
    let (socket, recorder) = begun(folder.path());
    let octets = std::fs::read(place::beside(&socket)).unwrap();
    drop(recorder);
    std::fs::remove_file(place::beside(&socket)).unwrap();
    let words: Vec<u64> = records::words_of(&octets).collect();
    let memory = npcc_heap::shared::SharedWords::new("npcc-recorder", words.len()).unwrap();
    for (to, word) in memory.words().iter().zip(words) {
        to.store(word, std::sync::atomic::Ordering::Relaxed);
    }
    let fd = std::os::fd::AsFd::as_fd(&memory).try_clone_to_owned();
    let store = Store::of(vec![("recorder".to_owned(), fd.unwrap())]);
    assert_eq!(keep_previous(&socket, &store), Some(Ending::Unknown));
    let kept = place::read(&place::previous(&socket)).unwrap();
    assert_eq!(kept.pid, u64::from(std::process::id()));
    assert!(store.close_rest().is_empty());
}
