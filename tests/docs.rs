//! Documents must list exactly what the program has.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{assert_success, root, switch};
use npcc_cnp::policy::{PolicyInputs, PolicyName, Unit};
use npcc_pipeline::drop::DropReason as Reason;
use npcc_pipeline::punt::PuntClass;
use npcc_pipeline::units::{BitRate, Nanos};
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
    let of = |headers: &[&str], section: Value| {
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
        for row in headers.iter().flat_map(|header| table(&guide, header)) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for key in cells[1].split('`').skip(1).step_by(2) {
                listed.insert(key.to_owned());
                let signalled = match &known[key] {
                    Value::String(text) => cells[2] == text,
                    Value::Array(all) if all.is_empty() => ["none", "all"].contains(&cells[2]),
                    Value::Object(all) if all.is_empty() => cells[2] == "none",
                    // The default follows from other keys, and is described in words.
                    Value::Null => cells[2].contains(' '),
                    value => *cells[2] == *value.to_string(),
                };
                assert!(signalled, "{key}: {} is not {}", cells[2], known[key]);
            }
        }
        let known: BTreeSet<String> = known.into_keys().collect();
        assert_eq!(listed, known, "below {headers:?}");
        listed.len()
    };
    let npcc = serde_json::to_value(npcc_config::model::Npcc::default()).unwrap();
    let main = table(&guide, NPCC_KEYS[0]).count();
    assert!(main <= 20, "{main} keys in the main table");
    let general = of(&NPCC_KEYS, npcc);
    let port = serde_json::to_value(npcc_config::model::PortNpcc::default()).unwrap();
    let of_port = of(&["| YAML | default | range | |"], port);
    let parameters = table(&guide, "| policy | parameter | default | unit, range | |").count();
    let all = general + of_port + parameters;
    assert!(all <= 40, "{all} keys of NPCC");
}

/// Headers of the two tables of keys under `npcc`.
const NPCC_KEYS: [&str; 2] = [
    "| YAML, under `npcc` | default | unit, range | what it does |",
    "| YAML, under `npcc` | default | unit, range | purpose |",
];

/// Each constant of the law stands in the guide's table or in its list of limits, and the table has at most 40.
#[test]
fn the_guide_to_npcc_gives_a_reason_for_every_constant_of_the_law() {
    let script = std::process::Command::new(root().join("scripts/constants")).output();
    let script = script.unwrap();
    assert_success(&script);
    let text = String::from_utf8(script.stdout).unwrap();
    let known: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("law\t")?.split('\t').nth(1))
        .collect();
    let guide = read("docs/npcc.md");
    let code = |text: &str| -> Vec<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let header = "| constant | value | reason | at other values |";
    let mut listed: Vec<String> = table(&guide, header)
        .flat_map(|row| code(row.split('|').nth(1).unwrap()))
        .collect();
    assert!(listed.len() <= 40, "{} constants", listed.len());
    let limits = guide
        .lines()
        .find(|line| line.starts_with("Other numbers are limits"));
    listed.extend(code(limits.unwrap()));
    let names = |all: &mut dyn Iterator<Item = String>| all.collect::<BTreeSet<String>>();
    let known = names(&mut known.into_iter().map(str::to_owned));
    assert_eq!(names(&mut listed.into_iter()), known);
}

/// Ranges in the guide are those of the program: both ends are accepted, and what lies beyond is refused.
#[test]
fn the_guide_to_npcc_has_the_ranges_of_its_keys() {
    let guide = read("docs/npcc.md");
    let is_accepted = |key: &str, value: &str| {
        let value = match key.split_once('.') {
            Some((section, key)) => format!("{section}: {{ {key}: {value} }}"),
            None => format!("{key}: {value}"),
        };
        let text = format!(
            "version: 1\nnpcc: {{ recovery: 1s, {value} }}\nports:\n  - {{ name: p0, device: net_null0, speed: 100G, npcc: {{}} }}\n"
        );
        npcc_config::parse("range.yaml", &text).is_ok()
    };
    let mut tried = 0;
    for row in NPCC_KEYS.iter().flat_map(|header| table(&guide, header)) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (key, range) = (cells[1].replace('`', ""), cells[3]);
        // The queue of CNPs has other conditions besides.
        let range = range.split(',').next().unwrap();
        let Some((low, high)) = range.split_once(" to ").filter(|_| key != "cnp.priority") else {
            continue;
        };
        tried += 1;
        // In the unit of either end, one more and one less.
        let digits = |text: &str| {
            text.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len())
        };
        let beyond = |text: &str, by: i64| {
            let (number, unit) = text.split_at(digits(text));
            let number = number.parse::<i64>().unwrap() + by;
            (number >= 0).then(|| format!("{number}{unit}"))
        };
        for end in [low, high] {
            assert!(is_accepted(&key, end), "{key}: {end} is refused");
        }
        for outside in [beyond(low, -1), beyond(high, 1)].into_iter().flatten() {
            assert!(!is_accepted(&key, &outside), "{key}: {outside} is accepted");
        }
    }
    assert_eq!(tried, 6, "keys with a range from one value to another");
}

/// Inputs from which the parameters of policies follow, all unlike the defaults.
fn other_inputs() -> PolicyInputs {
    PolicyInputs {
        tick: Nanos::from_micros(40),
        recovery: Nanos::from_micros(700),
        min_cnp_interval: Nanos::from_micros(90),
        feedback: Nanos::from_micros(33),
        filter: Nanos::from_micros(120),
        pool: Some(2_000_000),
        shallow: 600_000,
        drain: BitRate(25_000_000_000),
    }
}

/// Returns the default of a parameter with these inputs, as the guide's cell describes it.
fn described(cell: &str, inputs: &PolicyInputs) -> u64 {
    match cell {
        "200us, at most a quarter of the pool; without a limit 4/3 of `shallow`" => {
            let of_pool = |pool| {
                Nanos::from_micros(200)
                    .min(inputs.drain.time_of(pool / 4))
                    .0
            };
            let without = inputs.drain.time_of(inputs.shallow * 4 / 3).0;
            inputs.pool.map_or(without, of_pool)
        }
        "`npcc.recovery`" => inputs.recovery.0,
        number => number.parse().unwrap(),
    }
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
        let name = cells[2].replace('`', "");
        listed.entry(policy.clone()).or_default().push(name.clone());
        for inputs in [PolicyInputs::default(), other_inputs()] {
            let which = PolicyName::ALL.into_iter().find(|one| one.name() == policy);
            let known = which.unwrap().new_policy(&inputs).parameters();
            let known = known.iter().find(|one| one.name == name).unwrap();
            let (unit, range) = cells[4].split_once(", ").unwrap();
            let unit = match unit.split(' ').next().unwrap() {
                "time" => Unit::Nanos,
                "thousandths" => Unit::PerMille,
                other => panic!("{name}: {other} is no unit"),
            };
            let end = |text: &str| match text {
                "" => 0,
                "a tick" => inputs.tick.0,
                _ => unit.parse(text).unwrap(),
            };
            // `to 1s` begins at 0.
            let (low, high) = range.split_once("to ").unwrap();
            let row = (unit, (end(low.trim()), end(high)));
            assert_eq!(
                row,
                (known.unit, known.range),
                "{policy} {name}: {}",
                cells[4]
            );
            let default = described(cells[3], &inputs);
            assert_eq!(default, known.value, "{policy} {name}: {}", cells[3]);
        }
    }
    let known = PolicyName::ALL.map(|policy| {
        let parameters = policy.defaults().parameters();
        let names = parameters.iter().map(|one| one.name.to_owned());
        (policy.name().to_owned(), names.collect())
    });
    assert_eq!(listed, known.into());
}

/// Adds the path of every key below this part of the schema, without indexes and names of the user's own.
fn add_keys(schema: &Value, part: &Value, path: &str, keys: &mut BTreeSet<String>) {
    if !part.is_object() {
        return;
    }
    if let Some(name) = part["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        add_keys(schema, &schema["$defs"][name], path, keys);
    }
    for (key, part) in part["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{}{key}", if path.is_empty() { "" } else { "." });
        add_keys(schema, part, &path, keys);
        keys.insert(path);
    }
    let choices = ["anyOf", "oneOf", "allOf"].map(|of| part[of].as_array());
    for part in choices.into_iter().flatten().flatten() {
        add_keys(schema, part, path, keys);
    }
    let patterns = part["patternProperties"].as_object();
    let more = [&part["items"], &part["additionalProperties"]];
    for part in patterns
        .into_iter()
        .flat_map(|all| all.values())
        .chain(more)
    {
        add_keys(schema, part, path, keys);
    }
}

/// Adds the path of every key of a piece of YAML, without indexes and names of the user's own.
fn add_yaml(value: &serde_yaml::Value, path: &str, paths: &mut BTreeSet<String>) {
    for inner in value.as_sequence().into_iter().flatten() {
        add_yaml(inner, path, paths);
    }
    for (key, inner) in value.as_mapping().into_iter().flatten() {
        let words = format!("{path}.{}", key.as_str().unwrap_or_default());
        let path = plain(&words);
        add_yaml(inner, &path, paths);
        paths.insert(path);
    }
}

/// Returns a path without indexes and names of the user's own: `ports.mtu` for `ports[0].mtu`.
fn plain(path: &str) -> String {
    let parts = path.split(['.', '[', ']']);
    let is_key = |part: &&str| {
        !part.is_empty()
            && !part.contains(|c: char| !c.is_ascii_lowercase() && c != '_' && !c.is_ascii_digit())
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    parts.filter(is_key).collect::<Vec<_>>().join(".")
}

/// Returns the code spans of a page.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines();
    lines.flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Every key is in the example, or in the code of a guide with its section: `ports[].mtu`, or `linux: { integrate: true }`, or a row of a
/// table of its section.
#[test]
fn every_key_of_the_configuration_is_in_a_guide_or_in_the_example() {
    let mut explained = BTreeSet::new();
    let example = serde_yaml::from_str(&read("config/examples/dci-edge.yaml")).unwrap();
    add_yaml(&example, "", &mut explained);
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        for span in spans(&std::fs::read_to_string(path).unwrap()) {
            let is_of_path = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
            for path in span.split(|c| !is_of_path(c)).map(plain) {
                // A key of a section names the section too.
                let dots = path.match_indices('.').map(|(at, _)| at);
                explained.extend(dots.map(|at| path[..at].to_owned()));
                explained.insert(path);
            }
            if let Ok(yaml) = serde_yaml::from_str(&format!("{{{span}}}")) {
                add_yaml(&yaml, "", &mut explained);
            }
        }
    }
    let guide = read("docs/npcc.md");
    for (header, section) in [
        (NPCC_KEYS[0], "npcc"),
        (NPCC_KEYS[1], "npcc"),
        ("| YAML | default | range | |", "ports.npcc"),
    ] {
        for row in table(&guide, header) {
            let keys = spans(row.split('|').nth(1).unwrap());
            explained.extend(keys.map(|key| format!("{section}.{key}")));
        }
    }
    let is_explained = |path: &str| {
        // A key of a section needs its section before it.
        let dots: Vec<usize> = path.match_indices('.').map(|(at, _)| at).collect();
        let parts = dots.iter().rev().skip(1).map(|at| &path[at + 1..]);
        parts.chain([path]).any(|part| explained.contains(part))
    };
    // Words that many pages have explain nothing.
    for word in ["port", "name", "class", "rate"] {
        assert!(!is_explained(&format!("buffer.{word}")), "{word}");
    }
    let schema: Value = serde_json::from_str(&read("tests/snapshots/schema.json")).unwrap();
    let mut keys = BTreeSet::new();
    add_keys(&schema, &schema, "", &mut keys);
    assert!(keys.len() > 130, "{}", keys.len());
    keys.retain(|key| !is_explained(key));
    assert_eq!(keys, BTreeSet::new(), "keys that nothing explains");
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

/// Returns the words between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    let words = text.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

#[test]
fn the_guide_for_contributors_lists_every_fuzz_target() {
    let guide = read("CONTRIBUTING.md");
    let (_, after) = guide.split_once("The fuzz targets are ").unwrap();
    let (list, _) = after.split_once(": `scripts/fuzz`").unwrap();
    let files = std::fs::read_dir(root().join("tests/fuzz/fuzz_targets")).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| {
            let path = file.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(quoted(list), files);
    let manifest = read("tests/fuzz/Cargo.toml");
    let built = manifest.lines().filter_map(|line| {
        let path = line.strip_prefix("path = \"fuzz_targets/")?;
        Some(path.strip_suffix(".rs\"")?.to_owned())
    });
    assert_eq!(built.collect::<BTreeSet<String>>(), files);
}
