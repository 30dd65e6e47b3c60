//! Pairing of every manner of traffic between two addresses, with 1 to 4,096 connections: no CNP may carry a wrong queue pair.
//!
//! The table it measures is kept in `docs/pairing.md`; `UPDATE_SNAPSHOTS=1 cargo nextest run -p npcc-cnp --test laws pairing_table::` rewrites
//! it. Not shown here: that a network card with each of these manners exists (the captures show two).

use std::fmt::Write as _;
use std::path::Path;

use crate::traffic::{Cell, Manner, run};

const COUNTS: [u32; 5] = [1, 8, 64, 1024, 4096];
const BEGIN: &str = "<!-- begin of the measured table -->\n";
const END: &str = "<!-- end of the measured table -->\n";

fn row(manner: Manner, cells: &[Cell]) -> String {
    let mut row = format!("| {} |", manner.name());
    for cell in cells {
        let signalled = match cell.packets {
            Some(packets) => format!("{} %, {}, {packets}", cell.recall(), cell.evidence()),
            None => "0 %".to_owned(),
        };
        write!(row, " {signalled} |").unwrap();
    }
    row.push('\n');
    row
}

/// Measures these manners of traffic.
fn rows(manners: &[Manner]) -> String {
    let mut rows = String::new();
    for manner in manners {
        let cells: Vec<_> = COUNTS.iter().map(|n| run(*manner, *n)).collect();
        for (cell, n) in cells.iter().zip(COUNTS) {
            assert_eq!(cell.wrong, 0, "{manner:?} {n}");
        }
        rows += &row(*manner, &cells);
    }
    rows
}

#[test]
fn no_cell_has_a_wrong_queue_pair() {
    let mut table =
        String::from("| manner | 1 | 8 | 64 | 1,024 | 4,096 |\n|---|---|---|---|---|---|\n");
    // Two at a time: there are two cores.
    let (front, back) = Manner::ALL.split_at(Manner::ALL.len() / 2);
    let rows = std::thread::scope(|scope| {
        let back = scope.spawn(|| rows(back));
        rows(front) + &back.join().unwrap()
    });
    table += &rows;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pairing.md");
    let kept = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = kept.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        old, table,
        "the table in docs/pairing.md is of another version"
    );
}
