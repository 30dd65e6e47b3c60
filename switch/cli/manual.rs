//! Manual pages: one for each command, with the sections that `--help` does not have, and npcc-switch.yaml(5) made of the schema.

use std::fs::File;
use std::io::Result;
use std::path::Path;

use clap::builder::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use serde_json::Value;

/// Exit codes of all commands.
const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Success."),
    (
        "1",
        "The command failed, the switch refused, or a check found something to mend.",
    ),
    ("2", "Wrong usage, or a mistake in the configuration."),
    (
        "130, 143",
        "A second SIGINT or SIGTERM ended npcc-switch run at once.",
    ),
];

/// Files and variables that commands read.
const FILES: [(&str, &str); 4] = [
    (
        "/etc/npcc-switch/npcc-switch.yaml",
        "Configuration of the packaged service; see npcc-switch.yaml(5).",
    ),
    (
        npcc_config::model::DEFAULT_SOCKET,
        "Management socket. Another one is named by --socket, or by the variable NPCC_SOCKET.",
    ),
    (
        "/run/npcc-switch.recorder, /dev/shm/npcc-switch-*.recorder",
        "Flight recorder of the running switch; .previous is that of the last run.",
    ),
    (
        "/var/lib/npcc-switch/crash-*.tar.gz",
        "Reports of crashes, the last five.",
    ),
];

/// Examples by the name of their command's page.
const EXAMPLES: [(&str, &str, &str); 12] = [
    (
        "npcc-switch",
        "npcc-switch check -c edge.yaml && npcc-switch run -c edge.yaml",
        "Checks a configuration, then runs it.",
    ),
    (
        "npcc-switch-run",
        "npcc-switch run -c edge.yaml --for 10s --stats-json totals.json",
        "Runs for ten seconds and keeps the totals.",
    ),
    (
        "npcc-switch-check",
        "npcc-switch check -c edge.yaml",
        "Prints mistakes with line and column, or what the configuration needs.",
    ),
    (
        "npcc-switch-doctor",
        "npcc-switch doctor edge.yaml",
        "Says what the host lacks for this configuration.",
    ),
    (
        "npcc-switch-show",
        "npcc-switch show flows --host 10.0.1.0/24 --top 20",
        "Shows the heaviest flows of a subnet.",
    ),
    (
        "npcc-switch-show",
        "npcc-switch show queues --json | jq '.[].name'",
        "Prints names of queues' ports for a script.",
    ),
    (
        "npcc-switch-set",
        "npcc-switch set ports.wan0.speed 40G",
        "Changes the shaper of a port until unset or a restart.",
    ),
    (
        "npcc-switch-reload",
        "npcc-switch reload --confirm 60s",
        "Applies the file, and takes it back after a minute unless commit comes.",
    ),
    (
        "npcc-switch-capture",
        "npcc-switch capture --filter dropped -w - | tshark -r -",
        "Prints dropped frames with reason, queue and depth.",
    ),
    (
        "npcc-switch-trace-packet",
        "npcc-switch trace packet --filter 'dst host 10.0.2.3' --count 1",
        "Follows one packet through the switch.",
    ),
    (
        "npcc-switch-drain",
        "npcc-switch drain",
        "Has the neighbors send their traffic another way, before maintenance.",
    ),
    (
        "npcc-switch-cnp-send",
        "npcc-switch cnp send --to 10.0.1.3 --from 10.0.2.2 --qp 0x18",
        "Sends one CNP to a queue pair of 10.0.1.3, whose connection is with 10.0.2.2.",
    ),
];

/// Writes the pages of `command` and all its subcommands, and of the configuration, into `folder`.
pub(super) fn write(command: Command, folder: &Path) -> Result<()> {
    let mut command = without_help(command);
    command.build();
    write_pages(&command, folder)?;
    let mut page = File::create(folder.join("npcc-switch.yaml.5"))?;
    configuration(&npcc_config::schema()).to_writer(&mut page)
}

fn write_pages(command: &Command, folder: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let mut page = File::create(folder.join(format!("{name}.1")))?;
    Man::new(command.clone()).render(&mut page)?;
    sections(name).to_writer(&mut page)
}

/// Removes the subcommand `help` at any level: each page has a name of its own.
fn without_help(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

/// Sections behind those of `--help`.
fn sections(name: &str) -> Roff {
    let mut page = Roff::default();
    let examples = EXAMPLES.iter().filter(|(of, ..)| *of == name);
    for (at, (_, line, says)) in examples.enumerate() {
        if at == 0 {
            page.control("SH", ["EXAMPLES"]);
        }
        item(&mut page, bold(*line), says);
    }
    for (heading, rows) in [("EXIT STATUS", &EXIT_STATUS[..]), ("FILES", &FILES[..])] {
        page.control("SH", [heading]);
        for (what, says) in rows {
            item(&mut page, bold(*what), says);
        }
    }
    page.control("SH", ["SEE ALSO"]);
    let others = ["npcc-switch(1)", "npcc-switch.yaml(5)"];
    let others = others
        .into_iter()
        .filter(|other| *other != format!("{name}(1)"));
    let others: Vec<&str> = others.collect();
    page.text([roman(format!(
        "{}; /usr/share/doc/npcc-switch/",
        others.join(", ")
    ))]);
    page
}

fn item(page: &mut Roff, what: Inline, says: &str) {
    page.control("TP", []);
    page.text([what]);
    page.text([roman(says)]);
}

/// npcc-switch.yaml(5): each key with its type, its default and its description.
fn configuration(schema: &Value) -> Roff {
    let mut page = Roff::default();
    page.control("TH", ["npcc-switch.yaml", "5"]);
    page.control("SH", ["NAME"]);
    page.text([roman("npcc-switch.yaml - configuration of npcc-switch")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "A YAML file that npcc-switch run and npcc-switch check read. Times have units (20us, 3ms), rates (10G, 400M) and sizes (20KB, 16KiB) too. npcc-switch schema prints the same as JSON schema, for editors.",
    )]);
    page.control("SH", ["KEYS"]);
    keys(&mut page, schema, schema, "");
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(
        "npcc-switch(1), npcc-switch-check(1); /usr/share/doc/npcc-switch/examples/dci-edge.yaml",
    )]);
    page
}

/// The section of the schema that a value refers to, or its entries do.
fn section<'a>(schema: &'a Value, value: &'a Value) -> Option<(&'a Value, &'static str)> {
    let of = |value: &'a Value| {
        let name = value["$ref"].as_str()?.rsplit('/').next()?;
        schema["$defs"].get(name)
    };
    let any = value["anyOf"].as_array().into_iter().flatten();
    let direct = any.chain([value]).find_map(of).map(|found| (found, ""));
    let listed = || of(&value["items"]).map(|found| (found, "[]"));
    let mapped = || {
        let patterns = value["patternProperties"].as_object();
        let mut entries = patterns.into_iter().flatten().map(|(_, entry)| entry);
        let entry = entries
            .next()
            .unwrap_or_else(|| &value["additionalProperties"]);
        of(entry).map(|found| (found, ".NAME"))
    };
    direct.or_else(listed).or_else(mapped)
}

fn keys(page: &mut Roff, schema: &Value, section_of: &Value, path: &str) {
    let properties = section_of["properties"].as_object();
    for (key, value) in properties.into_iter().flatten() {
        let key = format!("{path}{key}");
        let found = section(schema, value);
        let default = &value["default"];
        let simple = !default.is_null() && !default.is_object() && !default.is_array();
        let mut title = vec![bold(key.clone())];
        if simple {
            let text = default
                .as_str()
                .map_or_else(|| default.to_string(), str::to_owned);
            title.extend([roman(" (default "), italic(text), roman(")")]);
        }
        page.control("TP", []);
        page.text(title);
        let says = value["description"].as_str().unwrap_or_default();
        let choices = found.map(|(found, _)| choices(found)).unwrap_or_default();
        page.text([roman(format!("{}{choices}", says.replace('\n', " ")))]);
        if let Some((found, entries)) = found
            && found["properties"].is_object()
        {
            keys(page, schema, found, &format!("{key}{entries}."));
        }
    }
}

/// Values that a key may have, where there are few.
fn choices(section: &Value) -> String {
    let named = section["oneOf"].as_array().into_iter().flatten();
    let named = named.filter_map(|one| one["const"].as_str());
    let listed = section["enum"].as_array().into_iter().flatten();
    let all: Vec<&str> = named.chain(listed.filter_map(Value::as_str)).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(" One of: {}.", all.join(", "))
}
