//! `scripts/card-sources` finds every row of the table whose quoted lines changed. The source tree is made of the quotes themselves.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use npcc_card::Profile;

/// Lines of each file, by number.
type Sources = BTreeMap<String, BTreeMap<usize, String>>;

/// Source tree with every quote on its line, and with the files and blocks in which a text is absent.
fn sources() -> Sources {
    let mut files = Sources::new();
    let mut blocks = BTreeSet::new();
    for profile in &Profile::all() {
        for (_, source, absent) in profile.sources() {
            for quote in source.lines() {
                let (file, rest) = quote.split_once(':').unwrap();
                let (line, text) = rest.split_once(": ").unwrap();
                let lines = files.entry(file.to_string()).or_default();
                let line = lines.entry(line.parse().unwrap()).or_default();
                // Of two quotes of a line, one may be a part of the other.
                if line.len() <= text.len() {
                    *line = format!("\t{text}");
                }
            }
            for line in absent.lines() {
                let (place, _) = line.split_once(": ").unwrap();
                let (path, head) = place.split_once('(').unwrap_or((place, ")"));
                let file = if path.contains('.') {
                    path.to_string()
                } else {
                    format!("{path}/empty.c")
                };
                blocks.insert((file, head.strip_suffix(')').unwrap().to_string()));
            }
        }
    }
    // Behind all quotes, ten lines apart.
    for (number, (file, head)) in blocks.into_iter().enumerate() {
        let lines = files.entry(file).or_default();
        lines.insert(20_000 + 10 * number, head);
        lines.insert(20_001 + 10 * number, "}".to_string());
    }
    files
}

fn write(folder: &Path, files: &Sources) {
    for (file, lines) in files {
        let end = lines.keys().last().copied().unwrap_or(0);
        let text: Vec<&str> = (1..=end)
            .map(|n| lines.get(&n).map_or("", String::as_str))
            .collect();
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.join("\n")).unwrap();
    }
}

fn card_sources(arguments: &[&str]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/card-sources");
    Command::new(script).args(arguments).output().unwrap()
}

/// Expects these lines of the script, and the status that belongs to them.
fn expect(arguments: &[&str], lines: &[&str]) {
    let output = card_sources(arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), lines, "{errors}");
    assert_eq!(
        output.status.code(),
        Some(i32::from(!lines.is_empty())),
        "{errors}"
    );
}

const FILE: &str = "drivers/net/mlx5/mlx5_tx.c";
const GONE: [&str; 2] = [
    "mlx5 tx_status: drivers/net/mlx5/mlx5_tx.c:275: if (offset < used)",
    "    gone",
];

#[test]
fn only_a_quote_that_its_file_no_longer_has_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut files = sources();
    write(folder.path(), &files);
    expect(&["--exact", path], &[]);

    let lines = files.get_mut(FILE).unwrap();
    let text = lines.remove(&275).unwrap();
    lines.insert(280, text);
    write(folder.path(), &files);
    expect(&[path], &[]);
    expect(&["--exact", path], &[GONE[0], "    on line 280"]);

    files.get_mut(FILE).unwrap().remove(&280);
    write(folder.path(), &files);
    expect(&[path], &GONE);
}

#[test]
fn a_text_that_a_driver_did_not_have_is_printed_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut files = sources();
    let file = "drivers/net/ixgbe/ixgbe_ethdev.c";
    let block = files[file]
        .iter()
        .find(|(_, line)| *line == "ixgbevf_eth_dev_ops = {")
        .unwrap();
    let end = block.0 + 1;
    let lines = files.get_mut(file).unwrap();
    lines.insert(end, "\t.dev_set_link_down = ixgbevf_down,".to_string());
    lines.insert(end + 1, "}".to_string());
    write(folder.path(), &files);
    expect(
        &[path],
        &[
            "ixgbe_vf set_link_down: drivers/net/ixgbe/ixgbe_ethdev.c(ixgbevf_eth_dev_ops = {): .dev_set_link_down",
            &format!("    now in {file}:{end}: .dev_set_link_down = ixgbevf_down,"),
        ],
    );
}

#[test]
fn a_tag_of_a_repository_is_read_in_place_of_its_work_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let git = |arguments: &[&str]| {
        let named = [
            "-C",
            path,
            "-c",
            "user.name=test",
            "-c",
            "user.email=test@example.org",
        ];
        let output = Command::new("git")
            .args(named)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let mut files = sources();
    git(&["init", "--quiet"]);
    for tag in ["v1", "v2"] {
        write(folder.path(), &files);
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", tag]);
        git(&["tag", tag]);
        files.get_mut(FILE).unwrap().remove(&275);
    }
    expect(&[path, "v1"], &[]);
    expect(&[path, "v2"], &GONE);
}

#[test]
fn a_folder_without_dpdk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = card_sources(&[folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("error: no lib/ethdev in "), "{errors}");
}
