//! Every file in `tests/reject/` is refused with exactly the text beside it.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p npcc-config --test reject` writes the texts anew; read the
//! difference before believing it.

use std::path::{Path, PathBuf};

use npcc_config::{Report, Severity, parse};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join("reject")
}

fn rejection(path: &Path) -> Report {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    match parse(&name, &text) {
        Err(report) => report,
        Ok(_) => panic!("{name} was accepted"),
    }
}

#[test]
fn corpus() {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 25, "the corpus shrank to {}", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let got = rejection(&path).to_string();
        let snapshot = path.with_extension("stderr");
        if update {
            std::fs::write(&snapshot, &got).unwrap();
        }
        let want = std::fs::read_to_string(&snapshot).unwrap_or_default();
        if got != want {
            wrong.push(format!(
                "{}\n--- want\n{want}\n--- got\n{got}",
                path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The operator fixes a bad file once, not once per mistake.
#[test]
fn all_mistakes_of_one_file_at_once() {
    let report = rejection(&folder().join("many.yaml"));
    let places: Vec<(usize, usize)> = report
        .diagnostics()
        .iter()
        .filter(|d| d.severity() == Severity::Error)
        .map(|d| (d.line(), d.column()))
        .collect();
    let want = [
        (1, 10),  // version
        (2, 23),  // a worker on the control core
        (4, 11),  // name
        (5, 13),  // device
        (6, 10),  // mac
        (7, 10),  // mtu
        (8, 30),  // address twice
        (9, 5),   // unknown key
        (12, 12), // speed
        (14, 22), // the CNPs' own queue
        (17, 13), // host bits
        (18, 34), // unreachable
        (20, 33), // unknown port
        (22, 9),  // bare number
        (23, 3),  // key twice
        (24, 9),  // deep below shallow
    ];
    assert_eq!(places, want, "{report}");
}

#[test]
fn many_faults_of_form_stay_bounded() {
    let mut text = String::from("ports: [{ name: a, device: net_null0 }]\n");
    for n in 0..1000 {
        text.push_str(&format!("key{n}: 1\n"));
    }
    let report = parse("t", &text).unwrap_err();
    assert!((100..=1000).contains(&report.diagnostics().len()));
    assert!(report.to_string().contains("more"));
}
