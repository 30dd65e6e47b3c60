//! Linux: where its side of the ports lies, and what may be said of it.

use super::Check;
use crate::tree::Path;
use crate::units::Bytes;

/// What the kernel may hold of news for us.
const BUFFER: std::ops::RangeInclusive<u64> = (64 << 10)..=(1 << 30);
/// A namespace is a file's name.
const LONGEST_NAME: usize = 255;

pub(super) fn check(check: &mut Check<'_>) {
    let linux = check.file.linux.clone();
    let path = |key: &str| Path::root("linux").key(key);
    let name = linux.netns.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain);
    if !is_name || name.starts_with('.') {
        let hint = "write a name of letters, digits, - and _, such as npcc, or none for the namespace the switch is started in";
        let message = format!("`{name}` is no name of a network namespace");
        check.error(&path("netns"), message, hint);
    }
    if !BUFFER.contains(&linux.receive_buffer.0) {
        let (least, most) = (Bytes(*BUFFER.start()), Bytes(*BUFFER.end()));
        let message = format!(
            "a receive buffer of {} is out of range",
            linux.receive_buffer
        );
        let hint = format!("write {least} to {most}; 16MiB is usual");
        check.error(&path("receive_buffer"), message, hint);
    }
}
