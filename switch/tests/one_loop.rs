//! The world and the appliance run one loop: what an iteration calls is called in one place.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use std::collections::BTreeMap;
use std::path::Path;

/// Returns the number of lines with `text` in each Rust file below a folder of this package, by path.
fn places(folder: &str, text: &str) -> BTreeMap<String, usize> {
    fn walk(folder: &Path, text: &str, all: &mut BTreeMap<String, usize>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, text, all);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let count = source.lines().filter(|line| line.contains(text)).count();
                if count > 0 {
                    all.insert(path.display().to_string(), count);
                }
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        text,
        &mut all,
    );
    all
}

#[test]
fn what_an_iteration_calls_is_called_in_one_place_and_the_world_calls_the_iteration() {
    // Commands, CNPs, the probe's begin of a turn: once in `Worker::iterate`; the control core: once in `ControlLoop::iterate`'s call.
    for (call, file) in [
        ("self.execute_commands(now)", "src/worker/mod.rs"),
        ("self.probe.turn_begins()", "src/worker/mod.rs"),
        ("port.poll(", "src/worker/mod.rs"),
        ("core.run_call_within(", "src/control/mod.rs"),
        ("self.run_call(now)", "src/control/mod.rs"),
    ] {
        let places = places("../engine/src", call);
        let [(only, 1)] = &places.into_iter().collect::<Vec<_>>()[..] else {
            panic!(
                "{call} has not one place: {:?}",
                self::places("../engine/src", call)
            );
        };
        assert!(only.ends_with(file), "{call} in {only}");
        assert!(
            self::places("tests/world", call).is_empty(),
            "a second copy of {call}"
        );
    }
    for folder in [
        "../engine/src/worker",
        "../engine/src/control",
        "tests/world",
    ] {
        let count: usize = places(folder, ".iterate(").into_values().sum();
        let expected = if folder == "tests/world" { 2 } else { 1 };
        assert_eq!(count, expected, "calls of the iteration in {folder}");
    }
}
