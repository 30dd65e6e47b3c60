//! Results of runs in a file, one line each, so that an interrupted matrix resumes.
//!
//! A line belongs to a [`Key`]: cell, hash of its scenario, seed, scheme, and the name of the law. A line that was truncated when the
//! process died is ignored, and its run done again.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::figures::Figures;
use crate::hash::fnv;

/// Identity of a run whose result is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Name of the cell.
    pub cell: String,
    /// Hash of its scenario file: a cell that has changed is run again.
    pub text: u64,
    /// Seed, as an offset from the scenario's own.
    pub seed: u64,
    /// Name of the scheme.
    pub scheme: String,
    /// Identity of the law and simulator: a label, or the hash of the program.
    pub law: String,
}

/// Returns the label of a law: the one given, or the hash of this program.
///
/// # Errors
/// When the program's file cannot be read.
pub fn law(given: Option<&str>) -> io::Result<String> {
    given.map_or_else(
        || {
            let program = std::fs::read(std::env::current_exe()?)?;
            Ok(format!("{:016x}", fnv(&program)))
        },
        |label| Ok(label.to_owned()),
    )
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key {
            cell,
            text,
            seed,
            scheme,
            law,
        } = self;
        write!(out, "{cell}\t{text:016x}\t{seed}\t{scheme}\t{law}")
    }
}

/// Store of the known results, and the file they are written to.
#[derive(Debug, Default)]
pub struct Results {
    known: HashMap<String, Figures>,
    file: Option<File>,
}

impl Results {
    /// Creates a store without a file, which lasts until the process ends.
    #[must_use]
    pub fn in_memory() -> Results {
        Results::default()
    }

    /// Opens the results of a file, which is created if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Results> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let complete = complete(&text);
        let known = known(&text[..complete]);
        if complete < text.len() {
            file.write_all(b"\n")?;
        }
        Ok(Results {
            known,
            file: Some(file),
        })
    }

    /// Reads the results of a file that stays as it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Results> {
        let text = std::fs::read_to_string(path)?;
        Ok(Results {
            known: known(&text[..complete(&text)]),
            file: None,
        })
    }

    /// Returns the result of a run, if it is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Figures> {
        self.known.get(&key.to_string())
    }

    /// Adds a result, and appends it to the file at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, key: &Key, figures: Figures) -> io::Result<()> {
        let key = key.to_string();
        if let Some(file) = &mut self.file {
            file.write_all(format!("{key}\t{}\n", figures.to_line()).as_bytes())?;
        }
        self.known.insert(key, figures);
        Ok(())
    }
}

/// Returns the length of the lines that are complete.
fn complete(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

fn known(text: &str) -> HashMap<String, Figures> {
    let known = text.lines().filter_map(|line| {
        // A key has five fields.
        let (at, _) = line.match_indices('\t').nth(4)?;
        Some((line[..at].to_owned(), Figures::from_line(&line[at + 1..])?))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u64) -> Key {
        Key {
            cell: "steady paper 25G x1.05 1km".to_owned(),
            text: 7,
            seed,
            scheme: "model".to_owned(),
            law: "v1".to_owned(),
        }
    }

    fn figures(peak: u64) -> Figures {
        Figures {
            peak,
            ..Figures::default()
        }
    }

    #[test]
    fn results_outlive_a_process_that_died_while_it_wrote() {
        let path = std::env::temp_dir().join(format!("npcc-results-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut results = Results::open(&path).unwrap();
        for seed in 0..3 {
            results.add(&key(seed), figures(seed * 10)).unwrap();
        }
        drop(results);
        let whole = std::fs::read(&path).unwrap();
        for cut in [1, 2, 30] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let mut results = Results::open(&path).unwrap();
            assert_eq!(results.get(&key(1)), Some(&figures(10)));
            assert_eq!(results.get(&key(2)), None, "cut off by {cut}");
            let read = Results::read(&path).unwrap();
            assert_eq!(read.get(&key(1)), Some(&figures(10)));
            results.add(&key(2), figures(21)).unwrap();
            drop(results);
            let results = Results::open(&path).unwrap();
            assert_eq!(results.get(&key(2)), Some(&figures(21)));
            assert_eq!(results.get(&key(0)), Some(&figures(0)));
        }
        let other = Key {
            law: "v2".to_owned(),
            ..key(0)
        };
        assert_eq!(Results::open(&path).unwrap().get(&other), None);
        std::fs::remove_file(&path).unwrap();
        assert!(Results::read(&path).is_err(), "it is not created");
    }
}
