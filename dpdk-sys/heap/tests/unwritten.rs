//! An aborted process, whose text is written before it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use npcc_heap::unwritten::Unwritten;

/// Variable that makes this test the process that is aborted.
const ABORTS: &str = "NPCC_TEST_ABORTS";

/// Says something, and aborts while the thread that writes it waits for a line on standard input.
fn aborts() {
    let (inlet, outlet) = UnixDatagram::pair().unwrap();
    let queue = outlet.as_fd().try_clone_to_owned().unwrap();
    let unwritten = Arc::new(Unwritten::of(vec![queue]));
    unwritten.before_abort(Duration::from_secs(600)).unwrap();
    inlet.send(b"last words").unwrap();
    std::thread::spawn(move || {
        std::io::stdin().read_line(&mut String::new()).unwrap();
        unwritten.writes(true);
        let mut text = [0; 64];
        let length = outlet.recv(&mut text).unwrap();
        std::io::stderr().write_all(&text[..length]).unwrap();
        unwritten.writes(false);
    });
    eprintln!("aborts");
    std::process::abort();
}

#[test]
fn an_abort_waits_for_what_was_said_and_ends_the_process_by_its_signal() {
    if std::env::var_os(ABORTS).is_some() {
        aborts();
    }
    let name = "unwritten::an_abort_waits_for_what_was_said_and_ends_the_process_by_its_signal";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ABORTS, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while line != "aborts\n" {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    // The write fails if it did not wait.
    let _ = child.stdin.take().unwrap().write_all(b"write\n");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("last words"), "{rest}");
    assert_eq!(child.wait().unwrap().signal(), Some(6));
}
