//! Lists of cores as the kernel writes them: `1-3,8`.

use std::collections::BTreeSet;

/// Parses a list; text that is no list, such as the kernel's `(null)`, is empty.
#[must_use]
pub fn read(text: &str) -> BTreeSet<usize> {
    let mut cores = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<usize>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

/// Formats a list.
#[must_use]
pub fn write(cores: &BTreeSet<usize>) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => parts.push((core, core)),
        }
    }
    let part = |(first, last): &(usize, usize)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    let parts: Vec<String> = parts.iter().map(part).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(write(&read("1-3,8,10-11\n")), "1-3,8,10-11");
        assert_eq!(read("1-3,5").into_iter().collect::<Vec<_>>(), [1, 2, 3, 5]);
        assert!(read("").is_empty() && read("(null)").is_empty());
    }
}
