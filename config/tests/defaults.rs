//! Law: a default is declared once. Settings, configuration, schema and simulator read the constants of `npcc_cnp::defaults`, or the model's own.

use std::path::{Path, PathBuf};

/// Fields and the digits of their defaults.
const DEFAULTS: [(&str, &str); 16] = [
    ("tick", "20"),
    ("recovery", "300"),
    ("min_cnp_interval", "60"),
    ("feedback", "20"),
    ("filter", "3"),
    ("shallow", "30"),
    ("deep", "120"),
    ("flows", "65_536"),
    ("ends", "131_072"),
    ("earned", "16"),
    ("cap", "50"),
    ("cap_per_second", "1_000_000"),
    ("per_second", "1_000_000"),
    ("dscp", "48"),
    ("kmin", "60"),
    ("kmax", "480"),
];

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

/// Returns true if a line gives a field this number, in a struct or in the declaration of its default.
fn gives(line: &str, field: &str, number: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let Some(rest) = line
        .strip_prefix(field)
        .and_then(|rest| rest.strip_prefix(": "))
    else {
        return false;
    };
    let value = rest.rsplit_once(" = ").map_or(rest, |(_, value)| value);
    let mut words = value.split(|one: char| !one.is_alphanumeric() && one != '_');
    words.any(|word| word == number)
}

#[test]
fn no_default_is_written_a_second_time() {
    assert!(gives(
        "pub tick: Nanos = Nanos::from_micros(20),",
        "tick",
        "20"
    ));
    assert!(gives("    filter: 3,", "filter", "3"));
    let mut all = Vec::new();
    for package in ["cnp", "config", "sim", "switch", "doctor", "feed", "lab"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        sources(&root.join(package).join("src"), &mut all);
    }
    assert!(all.len() > 300, "{}", all.len());
    let mut found = Vec::new();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let production = text.split("#[cfg(test)]").next().unwrap();
        for (line, number) in production.lines().zip(1..) {
            let is_given = DEFAULTS
                .iter()
                .any(|(field, digits)| gives(line, field, digits));
            if is_given && !path.ends_with("config/src/model/qos.rs") {
                found.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
