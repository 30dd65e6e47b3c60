//! Repeating commands end with their terminal and at the first signal, whatever the switch they show does.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use npcc_api::model::Snapshot;
use npcc_api::query::End;

use crate::common::crash::signal_until_dead;
use crate::common::{Lab, Running};
use nix::pty::{Winsize, openpty};
use npcc_testkit::{http, wait};

const TOP: &[&str] = &["top"];
const WATCH: &[&str] = &["show", "ports", "--watch"];
const SIGTERM: i32 = 15;
const SIGHUP: i32 = 1;
/// Escape sequence that leaves the alternate screen.
const RESTORED: &str = "\x1b[?1049l";

/// State of a stand-in for a switch.
#[derive(Debug, Default)]
struct StandIn {
    /// A request waits for its answer.
    waited_for: AtomicBool,
    /// That request was ended after [`wait::LONG`].
    gave_up: AtomicBool,
}

/// Answers `answers` requests as a switch without ports does. The answer to the next one never ends: it goes on octet by octet, so that a
/// client which waits for it waits for [`wait::LONG`].
fn stand_in(socket: &Path, answers: usize) -> Arc<StandIn> {
    let listener = UnixListener::bind(socket).unwrap();
    let stand_in = Arc::new(StandIn::default());
    let state = Arc::clone(&stand_in);
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let request = http::read(&stream).unwrap();
            if count >= answers {
                state.waited_for.store(true, Ordering::Relaxed);
                let end = Instant::now() + wait::LONG;
                let _ = http::write_head(&stream);
                while Instant::now() < end && stream.write_all(b" ").is_ok() {
                    // The stimulus is an octet now and then.
                    std::thread::sleep(wait::STEP);
                }
                state
                    .gave_up
                    .store(Instant::now() >= end, Ordering::Relaxed);
                continue;
            }
            let answer = match request.path.as_str() {
                "/v1/snapshot" => serde_json::to_string(&Snapshot::default()),
                _ => serde_json::to_string(&serde_json::json!({ "end": End::default() })),
            };
            // The command may be gone.
            let _ = http::write(&stream, 200, &(answer.unwrap() + "\n"));
        }
    });
    stand_in
}

/// A command on a terminal of its own.
struct Session {
    running: Running,
    terminal: File,
    shown: String,
    stand_in: Arc<StandIn>,
    _lab: Lab,
}

impl Session {
    /// Starts a command, with or without the terminal as its controlling one, and waits until it has drawn something.
    fn new(args: &[&str], controls: bool, answers: usize) -> Session {
        Session::with_fault(args, controls, answers, "none")
    }

    /// Starts a command in which `fault` is injected in a debug build; see [`Session::new`].
    fn with_fault(args: &[&str], controls: bool, answers: usize, fault: &str) -> Session {
        let lab = Lab::new();
        let socket = lab.path("switch.sock");
        let stand_in = stand_in(&socket, answers);
        let size = Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        // A copy that no child inherits: the terminal hangs up when it closes.
        let terminal = File::from(pty.master.try_clone().unwrap());
        drop(pty.master);
        let program = env!("CARGO_BIN_EXE_npcc-switch");
        let mut command = if controls {
            let mut command = Command::new("setsid");
            command.args(["--ctty", program]);
            command
        } else {
            Command::new(program)
        };
        let end = |end: &OwnedFd| Stdio::from(end.try_clone().unwrap());
        command.args(args).arg("--socket").arg(&socket);
        command
            .env("TERM", "xterm-256color")
            .env("NPCC_FAULT", fault);
        command.stdin(end(&pty.slave)).stdout(end(&pty.slave));
        command.stderr(Stdio::null());
        let child = command.spawn().unwrap();
        drop((pty.slave, command));
        let mut session = Session {
            running: Running::of(child),
            terminal,
            shown: String::new(),
            stand_in,
            _lab: lab,
        };
        session.read_until(|shown| shown.contains("PORT") || shown.contains("port"));
        session
    }

    /// Reads what the command shows until `holds` returns true for it, or it has ended.
    fn read_until(&mut self, holds: impl Fn(&str) -> bool) {
        let mut bytes = [0; 4096];
        while !holds(&self.shown) {
            let Ok(read @ 1..) = self.terminal.read(&mut bytes) else {
                return;
            };
            self.shown += &String::from_utf8_lossy(&bytes[..read]);
        }
    }

    /// Waits until the command waits for an answer.
    fn waits(&self) {
        let requested = || self.stand_in.waited_for.load(Ordering::Relaxed);
        wait::until("a request without an answer", wait::LONG, requested);
    }

    fn signal(&self, signal: i32) {
        self.running.signal(&signal.to_string());
    }

    /// Waits for its end and returns the exit status.
    fn end(mut self) -> ExitStatus {
        let awaited = || "its end".to_owned();
        wait::value(wait::LONG, awaited, || self.running.try_wait().unwrap())
    }

    /// Closes the other end of the terminal, as a cut SSH session does.
    fn hang_up(self) -> ExitStatus {
        let Session {
            running,
            terminal,
            shown,
            stand_in,
            _lab,
        } = self;
        drop(terminal);
        let nowhere = File::open("/dev/null").unwrap();
        let session = Session {
            running,
            terminal: nowhere,
            shown,
            stand_in,
            _lab,
        };
        session.end()
    }
}

#[test]
fn a_command_that_repeats_ends_with_its_terminal() {
    for args in [TOP, WATCH] {
        let status = Session::new(args, false, usize::MAX).hang_up();
        assert_eq!(status.code(), Some(0), "{args:?}: {status}");
        // The kernel also signals the session of a controlling terminal, and the default action may come first.
        let status = Session::new(args, true, usize::MAX).hang_up();
        let ended = status.success() || status.signal() == Some(SIGHUP);
        assert!(ended, "{args:?}: {status}");
    }
}

#[test]
fn the_first_signal_ends_a_command_that_repeats() {
    let mut top = Session::new(TOP, false, usize::MAX);
    top.signal(SIGTERM);
    top.read_until(|shown| shown.contains(RESTORED));
    assert!(top.shown.contains(RESTORED), "{:?}", top.shown);
    let status = top.end();
    assert_eq!(status.code(), Some(0), "{status}");

    let watch = Session::new(WATCH, false, usize::MAX);
    watch.signal(SIGTERM);
    let status = watch.end();
    assert_eq!(status.signal(), Some(SIGTERM), "{status}");
}

#[test]
fn top_restores_the_terminal_at_a_signal_while_the_switch_does_not_answer() {
    // Snapshot and flows of the first screen are answered.
    let mut top = Session::new(TOP, false, 2);
    top.waits();
    top.signal(SIGTERM);
    top.read_until(|shown| shown.contains(RESTORED));
    assert!(top.shown.contains(RESTORED), "{:?}", top.shown);
    let gave_up = top.stand_in.gave_up.load(Ordering::Relaxed);
    assert!(!gave_up, "it waited for the answer");
    let status = top.end();
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_second_signal_ends_top_at_once() {
    // The first one waits for a minute, as the switch does not answer.
    let mut top = Session::with_fault(TOP, false, 2, "leave");
    top.waits();
    signal_until_dead(&mut top.running, "TERM");
    let status = top.end();
    assert_eq!(status.code(), Some(128 + SIGTERM), "{status}");
}

#[test]
fn a_watch_ends_when_the_reader_of_its_pipe_does() {
    let lab = Lab::new();
    let socket = lab.path("switch.sock");
    stand_in(&socket, usize::MAX);
    let socket = socket.to_str().unwrap();
    let args = ["show", "ports", "--watch", "--socket", socket];
    let child = lab.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut running = Running::of(child);
    let output = running.stdout.take().unwrap();
    let mut first = String::new();
    BufReader::new(output).read_line(&mut first).unwrap();
    assert!(first.contains("PORT"), "{first}");
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}
