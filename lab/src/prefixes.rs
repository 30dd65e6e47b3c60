//! Files of prefixes, one per line, plain or gzipped: the usual form of a dump of a router's full table.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use npcc_config::ipnet::IpNet;

/// Reason why a file of prefixes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PrefixError {
    /// The system refused, or the compression is damaged.
    #[error("cannot read {file}: {source}")]
    Io {
        /// Path of the file.
        file: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A line is no prefix.
    #[error("{file}:{line}: `{text}` is no prefix such as 192.0.2.0/24")]
    Form {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// First word of the line.
        text: String,
    },
    /// The file holds no prefix.
    #[error("{0} holds no prefix")]
    Empty(String),
}

/// Reads the prefixes of a file, in its order. The first word of a line counts; empty lines and those that begin with `#` do not.
///
/// # Errors
/// [`PrefixError`].
pub fn read(path: &Path) -> Result<Vec<IpNet>, PrefixError> {
    let file = path.display().to_string();
    let io = |source| PrefixError::Io {
        file: file.clone(),
        source,
    };
    let mut raw = BufReader::new(File::open(path).map_err(io)?);
    let zipped = raw.fill_buf().map_err(io)?.starts_with(&[0x1f, 0x8b]);
    let mut text = String::new();
    if zipped {
        MultiGzDecoder::new(raw).read_to_string(&mut text)
    } else {
        raw.read_to_string(&mut text)
    }
    .map_err(io)?;
    let mut prefixes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let Some(word) = line
            .split_whitespace()
            .next()
            .filter(|word| !word.starts_with('#'))
        else {
            continue;
        };
        let prefix: IpNet = word.parse().map_err(|_| PrefixError::Form {
            file: file.clone(),
            line: number,
            text: word.to_owned(),
        })?;
        prefixes.push(prefix.trunc());
    }
    if prefixes.is_empty() {
        return Err(PrefixError::Empty(file));
    }
    Ok(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn plain_and_gzipped_files_read_alike_and_mistakes_have_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# a table\n10.0.0.0/8 via 192.0.2.1\n\n2001:db8::1/32\n";
        let plain = folder.path().join("plain.txt");
        std::fs::write(&plain, text).unwrap();
        let zipped = folder.path().join("zipped.gz");
        let file = File::create(&zipped).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        let want: Vec<IpNet> = vec![
            "10.0.0.0/8".parse().unwrap(),
            "2001:db8::/32".parse().unwrap(),
        ];
        assert_eq!(read(&plain).unwrap(), want);
        assert_eq!(read(&zipped).unwrap(), want);
        std::fs::write(&plain, "10.0.0.0/8\nten\n").unwrap();
        assert!(
            read(&plain)
                .unwrap_err()
                .to_string()
                .contains("plain.txt:2: `ten`")
        );
        std::fs::write(&plain, "\n").unwrap();
        assert!(matches!(read(&plain), Err(PrefixError::Empty(_))));
    }
}
