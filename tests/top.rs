//! `top` on a terminal of its own: it shows the switch, and leaves the terminal as it was, whatever ends it.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::http::Watched;
use crate::common::{alone, root};
use npcc_testkit::wait;

/// Escape sequences that leave the alternate screen and show the cursor.
const BACK: [&str; 2] = ["\x1b[?1049l", "\x1b[?25h"];

/// Runs `top` on a pseudo-terminal, and presses these keys after 2.5 s unless it has ended before; `fault` is injected in a debug build.
fn top(watched: &Watched, keys: &str, fault: &str) -> Output {
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
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(wait::STEP);
    }
    // A `top` that has already ended reads no key.
    let _ = child.stdin.take().unwrap().write_all(keys.as_bytes());
    child.wait_with_output().unwrap()
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn top_shows_queues_and_flows_and_restores_the_terminal_at_q_and_at_a_panic() {
    let _alone = alone();
    let watched = Watched::new();
    let output = top(&watched, "sq", "");
    let text = shown(&output);
    assert!(output.status.success(), "{text}");
    for part in ["\x1b[?1049h", "wan0", "10.0.1.3", "CNPs"] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let panicked = top(&watched, "", "top");
    let said = shown(&panicked);
    assert_eq!(panicked.status.code(), Some(1), "{said:?}");
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
