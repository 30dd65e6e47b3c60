//! Tables for people: a row is a list of cells under their headings.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use npcc_api::text::decimal;
pub(super) use npcc_api::text::time;

/// Heading and text of a cell.
pub(super) type Cell = (&'static str, String);

/// Markers before and after red text: neither takes a column, so that cells stay aligned.
const RED: [(&str, &str); 2] = [("\u{2061}", "\x1b[31m"), ("\u{2062}", "\x1b[0m")];

/// Width at which a line of a list is broken.
const WIDTH: usize = 118;

/// Renders a name of at most 11 characters and a list behind it, indented by `indent`; a long list goes on in the next line.
pub(super) fn item(indent: usize, name: &str, list: &str) -> String {
    let mut line = format!("{:indent$}{name:<11}", "");
    let behind = line.len();
    let mut text = String::new();
    for part in list.split_inclusive(", ") {
        if line.len() > behind && line.len() + 1 + part.trim_end().len() > WIDTH {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(behind);
        }
        if line.len() == behind {
            line.push(' ');
        }
        line += part;
    }
    text += line.trim_end();
    text.push('\n');
    text
}

/// Renders a table of rows. The first `left` columns are words, the others numbers; `none` is an empty row that gives the headings.
pub(super) fn table<R>(
    left: usize,
    none: &R,
    rows: impl IntoIterator<Item = R>,
    cells: impl Fn(&R) -> Vec<Cell>,
) -> String {
    let mut table = Table::new();
    let headings = cells(none).into_iter().map(|(heading, _)| heading);
    table.load_preset(NOTHING).set_header(headings);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in rows {
        table.add_row(cells(&row).into_iter().map(|(_, cell)| cell));
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n") + "\n";
    RED.iter()
        .fold(text, |text, (mark, escape)| text.replace(mark, escape))
}

/// Returns the cell of a number that must be 0: red where it is not.
pub(super) fn red(heading: &'static str, count: u64) -> Cell {
    let [(begin, _), (end, _)] = RED;
    let text = thousands(count);
    (
        heading,
        if count == 0 {
            text
        } else {
            format!("{begin}{text}{end}")
        },
    )
}

/// Returns the cell of a word.
pub(super) fn word(heading: &'static str, word: impl ToString) -> Cell {
    (heading, word.to_string())
}

/// Returns the cell of a number.
pub(super) fn count(heading: &'static str, count: u64) -> Cell {
    (heading, thousands(count))
}

/// Returns the cells of the columns that counters declare.
pub(super) fn counts(columns: Vec<(&'static str, u64)>) -> Vec<Cell> {
    let columns = columns.into_iter();
    columns
        .map(|(heading, value)| count(heading, value))
        .collect()
}

/// Lists counts by their names, without those that are 0; in the order of the names.
pub(super) fn list<N: AsRef<str> + Ord, C: Borrow<u64>>(
    counts: impl IntoIterator<Item = (N, C)>,
) -> String {
    let counts = counts
        .into_iter()
        .map(|(name, count)| (name, *count.borrow()));
    let some: BTreeMap<N, u64> = counts.filter(|(_, count)| *count > 0).collect();
    let some = some
        .iter()
        .map(|(name, count)| format!("{} {}", name.as_ref(), thousands(*count)));
    joined(some, ", ")
}

/// Joins the items, or returns a dash where there are none.
pub(super) fn joined<T: ToString>(all: impl IntoIterator<Item = T>, by: &str) -> String {
    let all: Vec<String> = all.into_iter().map(|one| one.to_string()).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(by)
    }
}

/// Formats a number with commas, such as `1,234,567`.
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a time given in us, as [`time`] does.
pub(super) fn micros(us: f64) -> String {
    let time_of = Duration::try_from_secs_f64(us / 1e6).unwrap_or_default();
    time(u64::try_from(time_of.as_nanos()).unwrap_or(u64::MAX))
}

/// Formats a rate in the unit people use: M or G, with at most one decimal.
pub(super) fn rate(bits: Option<u64>) -> String {
    match bits {
        None => "unlimited".to_owned(),
        Some(bits) if bits >= 1_000_000_000 => format!("{}G", decimal(bits, 1_000_000_000)),
        Some(bits) => format!("{}M", decimal(bits, 1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(rate(None), "unlimited");
        assert_eq!(rate(Some(10_000_000)), "10M");
        assert_eq!(rate(Some(99_900_000_000)), "99.9G");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (ns, text) in [
            (0, "0"),
            (999, "999 ns"),
            (312_000, "312 us"),
            (312_099, "312 us"),
            (2_450_000, "2.4 ms"),
            (5_691_325_900, "5.6 s"),
            (u64::MAX, "18446744073.7 s"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(micros(84.25), "84.2 us");
    }

    #[test]
    fn a_long_list_goes_on_under_its_beginning() {
        assert_eq!(item(2, "reasons", "-"), "  reasons     -\n");
        let reasons = ["emptying 1,234,567"; 12].join(", ");
        let text = item(2, "reasons", &reasons);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[0].starts_with("  reasons     emptying"));
        assert!(
            lines[1].starts_with(&format!("{:14}emptying", "")),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        let words: Vec<&str> = text.split_whitespace().skip(1).collect();
        assert_eq!(words.join(" "), reasons);
    }

    #[test]
    fn a_red_cell_is_as_wide_as_another() {
        let text = table(0, &0, [1_234, 0], |n| {
            vec![red("LATE", *n), count("END", 7)]
        });
        let plain = text.replace("\x1b[31m", "").replace("\x1b[0m", "");
        assert_eq!(plain, " LATE  END\n1,234    7\n    0    7\n");
        assert!(text.contains("\x1b[31m1,234\x1b[0m"), "{text}");
    }
}
