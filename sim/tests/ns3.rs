//! A second simulator agrees: DCQCN among eight senders, as in ns-3. The other scenarios run, with as many seeds as ns-3's, in
//! `scripts/test-long ns3`.

#[path = "../examples/ns3/rows.rs"]
mod rows;

/// Seeds of the short form.
const SEEDS: u64 = 2;

#[test]
fn ns3_has_the_same_figures_for_eight_senders() {
    let rows = rows::rows();
    assert_eq!(rows.len(), 14);
    let wanted = |row: &&rows::Row| (row.scenario.as_str(), row.cnp_interval.0) == ("B", 4_000);
    let row = rows.iter().find(wanted).unwrap();
    assert!(SEEDS < row.seeds);
    let lines = rows::compare(row, SEEDS, 2);
    assert_eq!(lines.len(), 9);
    for line in lines {
        println!("{line}");
        assert!(line.agrees(), "{line}");
    }
}
