//! The screen at three sizes, as characters; what keys do; and that no size and no answer breaks it.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p npcc-switch top` writes the screens anew; read the difference.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::path::Path;

use npcc_api::model::{Flow, Npcc, NpccQueue, Port, Queue, Snapshot};
use npcc_cnp::status::{NpccCount, WatchedCount};
use npcc_pipeline::drop::DropReason;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw;
use super::state::{Seen, State};

fn port(name: &str, seconds: u64) -> Port {
    let queues = (0..8).map(|priority| Queue {
        priority,
        ..Queue::default()
    });
    let mut port = Port {
        name: name.to_owned(),
        up: true,
        queues: queues.collect(),
        ..Port::default()
    };
    port.counts.rx.bytes = seconds * 1_250_000_000;
    port.counts.tx.bytes = seconds * 125_000;
    port
}

/// A look: a queue in each zone, one that is not watched, and flows of every kind.
fn seen(seconds: u64) -> Seen {
    let mut wan = port("wan0", seconds);
    let mut watched = Vec::new();
    let depths = [
        (1, 0, "idle"),
        (3, 600_000, "shallow"),
        (4, 2_000_000, "deep"),
        (5, 9_000_000, "hard"),
    ];
    for (priority, depth, zone) in depths {
        wan.queues[usize::from(priority)].level.depth = depth;
        wan.queues[usize::from(priority)].counts.ecn_marked = seconds * 70;
        watched.push(NpccQueue {
            port: "wan0".to_owned(),
            priority,
            zone: zone.to_owned(),
            counts: WatchedCount {
                depth,
                shallow: 375_000,
                deep: 1_500_000,
                hard: 3_000_000,
                cnps: seconds * u64::from(priority) * 1_000,
                ..WatchedCount::default()
            },
            ..NpccQueue::default()
        });
    }
    wan.queues[0].level.depth = 20_000;
    wan.queues[0].counts.peak = 80_000;
    wan.drops[DropReason::NoRoute.index()] = seconds * 12;
    wan.flow.paused = 0b1_1000;
    let mut spare = port("spare", 0);
    spare.up = false;
    spare.counts.lossless_lost = 3;
    let flows = (0..40u32).map(|n| Flow {
        src: format!("10.0.1.{}", n % 7 + 3),
        dst: if n % 9 == 0 {
            "2001:db8:12::7:2".to_owned()
        } else {
            "10.0.2.2".to_owned()
        },
        dest_qp: 0x11 + n,
        sender_qp: (n % 3 != 0).then_some(0x31 + n),
        evidence: ["none", "port-hash", "cm"][n as usize % 3].to_owned(),
        port: "wan0".to_owned(),
        priority: 3 + (n % 2) as u8,
        bytes: u64::from(n * n) * 10_000_000,
        cnps: u64::from(n % 5) * 100,
        response: (n % 3 == 1).then(|| "halved".to_owned()),
        refused: (n % 3 == 0).then(|| "cold".to_owned()),
        cold: n % 3 == 0,
        ..Flow::default()
    });
    Seen {
        snapshot: Snapshot {
            version: "0.1.0, DPDK 22.11".to_owned(),
            seconds: seconds as f64,
            ports: vec![port("dc0", seconds), wan, spare],
            npcc: Npcc {
                counts: NpccCount {
                    flows: 40,
                    ..NpccCount::default()
                },
                action: "send".to_owned(),
                cnps_sent: seconds * 13_000,
                queues: watched,
                ..Npcc::default()
            },
            ..Snapshot::default()
        },
        flows: flows.collect(),
    }
}

/// After two looks, a second apart.
fn state() -> State {
    let mut state = State::new(seen(60));
    state.look(seen(61));
    state
}

fn press(state: &mut State, keys: &str) -> bool {
    keys.chars()
        .any(|letter| state.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)))
}

/// The screen's characters.
fn screen(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::screen(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width.max(1)));
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol()).collect::<String>()
    };
    lines
        .map(|cells| line(cells).trim_end().to_owned() + "\n")
        .collect()
}

fn check(name: &str, new: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, new).unwrap();
    }
    let old = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(old == new, "{name} differs; it is now\n{new}");
}

#[test]
fn the_screen_at_three_sizes() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        check(
            &format!("top-{width}x{height}.txt"),
            &screen(&mut state(), width, height),
        );
    }
}

#[test]
fn no_size_and_no_answer_breaks_it() {
    for (width, height) in [(1, 1), (10, 3), (40, 6), (500, 4), (20, 200)] {
        screen(&mut state(), width, height);
        screen(&mut State::new(Seen::default()), width, height);
    }
    let mut state = state();
    state.lost("no switch listens there");
    let lost = screen(&mut state, 80, 24);
    assert!(
        lost.contains("no answer: no switch listens there"),
        "{lost}"
    );
    assert!(lost.contains("wan0 3"), "what it said last stays: {lost}");
    state.look(seen(62));
    assert!(!screen(&mut state, 80, 24).contains("no answer"));
}

#[test]
fn keys_sort_filter_scroll_hold_and_end() {
    let mut state = state();
    let qps = |state: &State| {
        state
            .flows()
            .iter()
            .map(|flow| flow.dest_qp - 0x11)
            .collect::<Vec<_>>()
    };
    assert_eq!(qps(&state)[..3], [39, 38, 37], "heaviest first");
    press(&mut state, "r");
    assert_eq!(qps(&state)[..3], [0, 1, 2]);
    press(&mut state, "rs");
    assert!(
        state
            .flows()
            .windows(2)
            .all(|two| two[0].cnps >= two[1].cnps)
    );
    press(&mut state, "s");
    assert!(
        state
            .flows()
            .windows(2)
            .all(|two| two[0].priority <= two[1].priority)
    );
    press(&mut state, "/2001:DB8q");
    assert_eq!(state.flows().len(), 0, "while typing, q is a letter");
    state.key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
    state.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    assert_eq!(state.flows().len(), 5);
    press(&mut state, "c");
    assert_eq!(state.flows().len(), 40);
    press(&mut state, &"j".repeat(1_000));
    screen(&mut state, 80, 24);
    assert!(
        state.above < 40,
        "it stops at the last flow: {}",
        state.above
    );
    press(&mut state, " ");
    state.look(seen(90));
    assert_eq!(state.now.snapshot.seconds, 61.0, "held");
    assert!(press(&mut state, "q"));
    let mut anew = State::new(seen(60));
    anew.look(seen(2));
    assert_eq!(
        anew.rate(|all| all.npcc.cnps_sent),
        0.0,
        "a switch that was started anew"
    );
}

/// Guards the terminal: no name or error that another program wrote moves the cursor.
#[test]
fn control_characters_of_others_are_not_drawn() {
    let mut state = state();
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\r\n".to_owned();
    for port in &mut state.now.snapshot.ports {
        port.name = evil.clone();
    }
    for flow in &mut state.now.flows {
        flow.port.clone_from(&evil);
        flow.refused = Some(evil.clone());
    }
    state.error = Some(evil);
    let drawn = screen(&mut state, 120, 40);
    assert!(drawn.contains("[2J"), "{drawn}");
    assert!(
        !drawn.replace('\n', "").contains(char::is_control),
        "{drawn}"
    );
}
