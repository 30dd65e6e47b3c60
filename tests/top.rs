//! `top` on a terminal of its own: it shows the switch, and leaves the terminal as it was, whatever ends it.

use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::http::Watched;
use crate::common::{alone, root};
use npcc_testkit::wait;

/// Escape sequences that leave the alternate screen and show the cursor.
const BACK: [&str; 2] = ["\x1b[?1049l", "\x1b[?25h"];

/// Runs `top` on a pseudo-terminal, and presses these keys once it has shown all `parts`, unless it has ended before; `fault` is injected in a
/// debug build. Returns its exit status, and all that it showed.
fn top(watched: &Watched, parts: &[&str], keys: &str, fault: &str) -> (ExitStatus, String) {
    let socket = watched.lab.path("switch.sock");
    let program = env!("CARGO_BIN_EXE_npcc-switch");
    let line = format!(
        "stty rows 40 cols 120; {program} top --socket {}",
        socket.display()
    );
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .current_dir(root())
        .env("NPCC_FAULT", fault)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&shown);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stdout.read(&mut bytes) {
            sink.lock().unwrap().extend_from_slice(&bytes[..read]);
        }
    });
    let text = || String::from_utf8_lossy(&shown.lock().unwrap()).into_owned();
    let awaited = || format!("{parts:?} in {:?}", text());
    wait::value(wait::LONG, awaited, || {
        let text = text();
        let is_shown = parts.iter().all(|part| text.contains(part));
        (is_shown || child.try_wait().unwrap().is_some()).then_some(())
    });
    // A `top` that has already ended reads no key.
    let _ = child.stdin.take().unwrap().write_all(keys.as_bytes());
    let status = child.wait().unwrap();
    reader.join().unwrap();
    (status, text())
}

#[test]
fn top_shows_queues_and_flows_and_restores_the_terminal_at_q_and_at_a_panic() {
    let _alone = alone();
    let watched = Watched::new();
    let parts = ["\x1b[?1049h", "wan0", "10.0.1.3", "CNPs"];
    let (status, text) = top(&watched, &parts, "sq", "");
    assert!(status.success(), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    // Its end, which it comes to by itself, is what is waited for.
    let (status, said) = top(&watched, &["a text that is never shown"], "", "top");
    assert_eq!(status.code(), Some(1), "{said:?}");
    for (text, after) in [(&text, ""), (&said, "a fault was asked for at `top`")] {
        let left = text.rfind(BACK[0]).unwrap_or_else(|| panic!("{text:?}"));
        assert!(text.rfind(BACK[1]).is_some(), "{text:?}");
        assert!(
            text[left..].contains(after),
            "the message is on the terminal as it was: {text:?}"
        );
    }
}

#[test]
fn top_without_a_terminal_is_refused_with_a_hint() {
    let _alone = alone();
    let watched = Watched::new();
    let socket = watched.lab.path("switch.sock");
    let args = ["top", "--socket", socket.to_str().unwrap()];
    let output = watched.lab.command(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("show ... --watch"), "{said}");
}
