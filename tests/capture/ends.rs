//! Captures end in every way, and none leaves the workers capturing.

use std::process::{Child, Command, Stdio};

use super::{LOSING, losing, pause, start, tshark};
use crate::common::net::run;
use crate::common::{Running, alone, assert_success};

#[test]
fn a_capture_ends_with_its_client_however_that_goes() {
    let _alone = alone();
    let switch = start(LOSING, &losing(), &[pause()]);
    let begin = || -> Running {
        let child = switch
            .client(&["capture", "-w", "a.pcapng"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        switch.until("it captures", || switch.captures());
        Running::of(child)
    };
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    };
    // One capture runs at a time, and a second is refused.
    let mut first = begin();
    let second = switch.ask(&["capture", "-w", "b.pcapng"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another capture runs"));
    // Killed: its capture ends, and the next may begin.
    first.0.as_mut().unwrap().kill().unwrap();
    switch.until("a killed client's capture ends", || !switch.captures());
    // SIGINT ends it cleanly: the file says what was lost.
    let mut third = begin();
    let child = third.0.take().unwrap();
    run(&format!("kill -INT {}", child.id()));
    let (status, text) = said(child);
    assert!(status.success(), "{text}");
    assert!(text.contains("frames captured, "), "{text}");
    switch.until("an interrupted capture ends", || !switch.captures());
    let whole = Command::new("capinfos")
        .arg("-M")
        .arg(switch.path("a.pcapng"))
        .output();
    // capinfos comes with tshark on some distributions only; tshark reads to the end in any case.
    assert!(whole.is_err() || whole.unwrap().status.success());
    assert!(!tshark(&switch.path("a.pcapng"), &["frame.number"]).is_empty());
    // A reader of the pipe goes away.
    let script = format!(
        "'{}' capture --socket switch.sock -w - | head -c 100000 >/dev/null",
        env!("CARGO_BIN_EXE_npcc-switch")
    );
    let piped = Command::new("sh")
        .args(["-c", &script])
        .current_dir(switch.dir.path())
        .output()
        .unwrap();
    assert_success(&piped);
    switch.until("a capture whose reader left ends", || !switch.captures());
    // A switch that ends notifies its client.
    let mut last = begin();
    let mut switch = switch;
    switch.stop();
    let (status, text) = said(last.0.take().unwrap());
    assert!(
        status.success() && text.contains("the switch stopped"),
        "{status} {text}"
    );
}
