//! What the documents list must be what there is.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::collections::BTreeSet;

use common::{assert_success, root, switch};
use npcc_pipeline::drop::DropReason as Reason;
use npcc_pipeline::punt::PuntClass;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// First cells, without their backticks, of the table that follows this header.
fn first_column(text: &str, header: &str) -> BTreeSet<String> {
    let rows = text.lines().skip_while(|line| *line != header).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_operators_guide_lists_every_drop_reason() {
    let listed = first_column(&read("docs/operator.md"), "| reason | what it means |");
    let all: BTreeSet<String> = Reason::ALL
        .iter()
        .map(|reason| reason.name().to_owned())
        .collect();
    assert_eq!(listed, all);
}

#[test]
fn the_operators_guide_lists_every_punt_class_and_its_rate() {
    let guide = read("docs/operator.md");
    let header = "| class, best first | what | frames a second (`linux.punt`) |";
    let rows = guide.lines().skip_while(|line| *line != header).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let listed: Vec<(String, u32)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, name, .., rate, _] = cells[..] else {
                panic!("{row}: no table row");
            };
            (
                name.replace('`', ""),
                rate.replace(',', "").parse().unwrap(),
            )
        })
        .collect();
    let punt = npcc_config::model::Punt::default();
    let classes = PuntClass::ALL.map(|class| (class.name().to_owned(), punt.of(class).get()));
    let others = [
        ("unresolved".to_owned(), punt.unresolved.get()),
        ("icmp_errors".to_owned(), punt.icmp_errors.get()),
    ];
    assert_eq!(listed, [&classes[..], &others].concat());
}

#[test]
fn the_readme_lists_every_table_that_show_knows() {
    let output = switch().args(["show", "--help"]).output().unwrap();
    assert_success(&output);
    let help = String::from_utf8(output.stdout).unwrap();
    let known = help.lines().filter_map(|line| {
        let (name, _) = line.trim().strip_prefix("- ")?.split_once(':')?;
        Some(name.to_owned())
    });
    let known: BTreeSet<String> = known.collect();
    let readme = read("README.md");
    let listed = readme.split("npcc-switch show ").nth(1).unwrap();
    let listed = listed.split_whitespace().next().unwrap().split('|');
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_configuration_in_the_guide_to_installing_is_fine() {
    let guide = read("docs/install.md");
    let lines = guide.lines().skip_while(|line| *line != "    version: 1");
    let lines = lines.take_while(|line| line.starts_with("    "));
    let yaml: String = lines.map(|line| format!("{}\n", &line[4..])).collect();
    assert!(yaml.contains("action: observe"), "{yaml}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switch.yaml");
    std::fs::write(&file, yaml).unwrap();
    assert_success(&switch().args(["check", "-c"]).arg(file).output().unwrap());
}
