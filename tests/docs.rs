//! Documents must list exactly what the program has.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{assert_success, root, switch};
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::drop::DropReason as Reason;
use npcc_pipeline::punt::PuntClass;
use serde_json::Value;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// Returns the rows of the table that follows this header.
fn table<'a>(text: &'a str, header: &str) -> impl Iterator<Item = &'a str> {
    let rows = text.lines().skip_while(move |line| *line != header).skip(2);
    rows.take_while(|line| line.starts_with('|'))
}

#[test]
fn the_operators_guide_lists_every_drop_reason_and_marks_those_of_malformed_frames() {
    let guide = read("docs/state.md");
    let listed: BTreeSet<String> = table(&guide, "| reason | what it means |")
        .map(|row| row.split('|').nth(1).unwrap().trim().to_owned())
        .collect();
    let all = Reason::ALL.map(|reason| {
        let mark = if reason.is_malformed() { " *" } else { "" };
        format!("`{}`{mark}", reason.name())
    });
    assert_eq!(listed, all.into());
}

#[test]
fn the_operators_guide_lists_every_punt_class_and_its_rate() {
    let guide = read("docs/linux.md");
    let header = "| class, best first | what | frames a second (`linux.punt`) |";
    let listed: Vec<(String, u32)> = table(&guide, header)
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
fn the_guide_to_npcc_lists_every_key_and_its_default() {
    let guide = read("docs/npcc.md");
    let of = |header: &str, section: Value| {
        let mut known = BTreeMap::new();
        for (key, value) in section.as_object().unwrap() {
            let nested = value.as_object().filter(|map| !map.is_empty());
            match nested {
                Some(map) => {
                    let own = map.iter();
                    known.extend(
                        own.map(|(inner, value)| (format!("{key}.{inner}"), value.clone())),
                    );
                }
                None => drop(known.insert(key.clone(), value.clone())),
            }
        }
        let mut listed = BTreeSet::new();
        for row in table(&guide, header) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for key in cells[1].split('`').skip(1).step_by(2) {
                listed.insert(key.to_owned());
                let signalled = match &known[key] {
                    Value::String(text) => cells[2] == text,
                    Value::Number(number) => cells[2] == number.to_string(),
                    Value::Array(all) if all.is_empty() => ["none", "all"].contains(&cells[2]),
                    // The default follows from other keys, or is described in words.
                    _ => !cells[2].is_empty(),
                };
                assert!(signalled, "{key}: {} is not {}", cells[2], known[key]);
            }
        }
        let known: BTreeSet<String> = known.into_keys().collect();
        assert_eq!(listed, known, "below `{header}`");
    };
    let npcc = serde_json::to_value(npcc_config::model::Npcc::default()).unwrap();
    of(
        "| YAML, under `npcc` | default | unit, range | what it does |",
        npcc,
    );
    let port = serde_json::to_value(npcc_config::model::PortNpcc::default()).unwrap();
    of("| YAML | default | range | |", port);
}

#[test]
fn the_guide_to_npcc_lists_every_policy_and_its_parameters() {
    let guide = read("docs/npcc.md");
    let mut listed = BTreeMap::<String, Vec<String>>::new();
    let mut policy = String::new();
    for row in table(&guide, "| policy | parameter | default | unit, range | |") {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if !cells[1].is_empty() {
            policy = cells[1].replace('`', "");
        }
        let names = cells[2].split('`').skip(1).step_by(2).map(str::to_owned);
        listed.entry(policy.clone()).or_default().extend(names);
    }
    let known = PolicyName::ALL.map(|policy| {
        let parameters = policy.defaults().parameters();
        let names = parameters.iter().map(|one| one.name.to_owned());
        (policy.name().to_owned(), names.collect())
    });
    assert_eq!(listed, known.into());
}

#[test]
fn every_key_of_the_configuration_is_in_a_guide_or_in_the_example() {
    let mut text = read("config/examples/dci-edge.yaml");
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "md") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    let words: BTreeSet<&str> = text
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .collect();
    let schema: Value = serde_json::from_str(&read("tests/snapshots/schema.json")).unwrap();
    let sections = schema["$defs"].as_object().unwrap().values();
    let mut unknown = Vec::new();
    for section in sections.chain([&schema]) {
        let keys = section["properties"].as_object().into_iter().flatten();
        unknown.extend(
            keys.map(|(key, _)| key)
                .filter(|key| !words.contains(key.as_str())),
        );
    }
    assert_eq!(unknown, Vec::<&String>::new(), "keys that nothing explains");
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

/// Every file that the pages on the architecture name exists.
#[test]
fn the_pages_on_the_architecture_name_files_that_exist() {
    for page in ["ARCHITECTURE.md", "docs/concurrency.md"] {
        let text = read(page);
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
        let words = text.split(|c| !is_of_path(c));
        let paths = words
            .filter(|word| word.ends_with(".rs") || word.ends_with('/') && word.contains("src/"));
        let mut count = 0;
        for path in paths {
            assert!(root().join(path).exists(), "{page}: {path}");
            count += 1;
        }
        assert!(count > 20, "{page}: {count}");
    }
}
