//! Tests of memory that outlives its creator.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use npcc_heap::shared::SharedWords;

#[test]
fn a_descriptor_brings_the_words_back_when_who_made_them_is_gone() {
    let first = SharedWords::new("npcc-test", 1000).unwrap();
    assert_eq!(first.words().len(), 1000);
    assert!(
        first
            .words()
            .iter()
            .all(|word| word.load(Ordering::Relaxed) == 0)
    );
    first.words()[999].store(7, Ordering::Relaxed);
    let kept = first.as_fd().try_clone_to_owned().unwrap();
    drop(first);

    let second = SharedWords::of(kept).unwrap();
    assert_eq!(second.words()[999].load(Ordering::Relaxed), 7);
    let both = SharedWords::of(second.as_fd().try_clone_to_owned().unwrap()).unwrap();
    both.words()[0].store(9, Ordering::Relaxed);
    assert_eq!(second.words()[0].load(Ordering::Relaxed), 9);
}

#[test]
fn its_size_never_changes() {
    let words = SharedWords::new("npcc-test", 1000).unwrap();
    let file = File::from(words.as_fd().try_clone_to_owned().unwrap());
    assert!(file.set_len(8).is_err());
    assert!(file.set_len(1 << 20).is_err());
}

#[test]
fn what_may_change_its_size_or_holds_no_words_is_refused() {
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    assert!(
        SharedWords::of(file)
            .unwrap_err()
            .to_string()
            .contains("not of a memfd")
    );
    assert!(SharedWords::new("npcc-test", 0).is_err());
    assert!(SharedWords::new("npcc-test", usize::MAX).is_err());
    assert!(SharedWords::new("a\0b", 8).is_err());
}

#[test]
fn a_file_has_what_was_stored_when_who_made_it_is_gone_and_is_nobody_elses() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let words = SharedWords::in_file(&path, 1000).unwrap();
    words.words()[999].store(0x0102_0304_0506_0708, Ordering::Relaxed);
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.len(), meta.mode() & 0o777), (8000, 0o600));
    assert!(meta.blocks() * 512 >= 8000, "its room is not taken");
    assert!(SharedWords::in_file(&path, 8).is_err(), "it is there");
    drop(words);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[7992..], 0x0102_0304_0506_0708_u64.to_ne_bytes());
    let other = folder.path().join("none");
    assert!(SharedWords::in_file(&other, 0).is_err());
    assert!(SharedWords::in_file(&other, usize::MAX).is_err());
}
