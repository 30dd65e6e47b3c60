//! Second simulator: compares DCQCN in this one, as `hpcc-vendor`, with the same scenarios in ns-3 (sim/tests/ns3/rows.yaml).
//!
//!     ns3 [SEEDS]
//!
//! Each scenario runs with as many seeds as ns-3's figures have, or with SEEDS. A figure agrees when the difference of the means is at most
//! three standard deviations of ns-3's runs or 2 %, whichever is more. Exit code 1 when one does not.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what it finds is what it is for, and its files are part of the tree"
)]

mod rows;

use std::process::ExitCode;

fn main() -> ExitCode {
    let seeds = std::env::args().nth(1).map(|text| text.parse());
    let Ok(seeds) = seeds.transpose() else {
        eprintln!("error: the number of seeds is a number, as in scripts/test-long ns3 4");
        return ExitCode::from(2);
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{:<20} {:>11} {:>9} {:>11} {:>9} {:>10} {:>10}",
        "figure", "ours", "sd", "ns-3", "sd", "off by", "allowed"
    );
    let (mut all, mut off) = (0, 0);
    for row in rows::rows() {
        for line in rows::compare(&row, seeds.unwrap_or(row.seeds), jobs) {
            println!("{line}");
            all += 1;
            off += u32::from(!line.agrees());
        }
    }
    println!("{off} of {all} figures disagree");
    ExitCode::from(u8::from(off > 0))
}
