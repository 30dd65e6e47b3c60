//! Threads that poll: worker and control core wait for no other thread and make no system call, whatever passes and whoever asks.
//!
//! Needs root, to trace threads.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::busy::busy;
use crate::common::switch::Switch;
use crate::common::{alone, python, root, seconds};
use npcc_testkit::wait;

/// Python process that counts the system calls of a thread.
struct Tracer {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Tracer {
    /// Starts to trace a thread, and returns once it is traced.
    fn start(thread: u32) -> Tracer {
        let mut command = Command::new(python());
        command.arg(root().join("tests/peer/syscalls.py"));
        command.args([thread.to_string(), seconds(1).to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Tracer { child, says }
    }

    /// Returns the system calls that the thread made, by their numbers.
    fn calls(mut self) -> BTreeMap<String, u64> {
        let mut text = String::new();
        self.says.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

/// Returns the threads of a process by the names that the kernel has.
fn threads(process: u32) -> BTreeMap<String, u32> {
    let all = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let named = all.map(|task| {
        let path = task.unwrap().path();
        let name = fs::read_to_string(path.join("comm")).unwrap();
        let number = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        (name.trim_end().to_owned(), number)
    });
    named.collect()
}

/// Number of times that a thread gave its core away to wait.
fn waits(process: u32, thread: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).unwrap();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// Frames of both directions pass meanwhile, CNPs leave, a queue is in a storm, and clients ask without pause.
#[test]
fn worker_and_control_core_make_no_system_call() {
    let _alone = alone();
    let mut switch = Switch::start(busy());
    let frames = |switch: &Switch| switch.show("ports")[0]["rx"]["packets"].as_u64().unwrap();
    switch.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x31"]);
    wait::until("CNPs leave", wait::LONG, || {
        switch.show("npcc")["cnps_sent"].as_u64() > Some(0)
    });
    let process = switch.child.id();
    let all = threads(process);
    let worker = all.iter().find(|(name, _)| name.contains("worker"));
    let worker = *worker.unwrap_or_else(|| panic!("{all:?}")).1;
    let clients = || {
        for table in ["ports", "queues", "npcc", "flows", "log"] {
            switch.done(&["show", table]);
        }
    };
    for (name, thread) in [("worker", worker), ("control core", process)] {
        let (before, waited) = (frames(&switch), waits(process, thread));
        let end = Instant::now() + Duration::from_secs(seconds(1));
        while Instant::now() < end {
            clients();
        }
        assert_eq!(waits(process, thread), waited, "{name} waited");
        let mut tracer = Tracer::start(thread);
        while tracer.is_running() {
            clients();
        }
        let calls = tracer.calls();
        assert!(
            calls.is_empty(),
            "{name}: system calls by number: {calls:?}"
        );
        assert!(frames(&switch) > before);
    }
    switch.stop();
}
