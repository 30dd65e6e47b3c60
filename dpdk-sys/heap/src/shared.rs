//! Memory that outlives a process: a sealed memfd or a file of its own, mapped as words of 64 bits: [`SharedWords`].
//!
//! The memory lives as long as its descriptor: a service manager's descriptor store keeps it while one process ends and the next
//! one starts. The meaning of the words is the caller's; the next process may be another version, so a layout begins with its version.
//!
//! A file ([`SharedWords::in_file`]) is found by its name, without a process that keeps a descriptor: what a process that was killed wrote
//! is read from it by the next one. Its place is a tmpfs, where a store is a store to memory.
//!
//! Laws: the size of a memfd never changes, so that no access is beyond the end (`F_SEAL_SHRINK`, `F_SEAL_GROW`, `F_SEAL_SEAL`; memfd_create(2),
//! fcntl(2)), and a descriptor without these seals is refused; every access is atomic, so that two processes may look at once.
//! A file has no seals: it is new, accessible to its owner alone (mode 0600), and all its space is allocated beforehand, so that neither a
//! full disk nor another user makes an access fail. Root and the owner could still shorten it, but they may also kill the process, which
//! is what an access beyond the end does (SIGBUS).

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use nix::fcntl::{FcntlArg, SealFlag, fcntl, posix_fallocate};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

/// Bytes of a word.
const WORD: usize = size_of::<AtomicU64>();

/// Shared memory as words of 64 bits, see the module's text.
#[derive(Debug)]
pub struct SharedWords {
    memory: OwnedFd,
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: it is a mapping of atomics and a descriptor, neither of which belongs to a thread.
unsafe impl Send for SharedWords {}
// SAFETY: as above; a shared reference gives atomics only.
unsafe impl Sync for SharedWords {}

/// Seals that keep the size of the memory.
fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL
}

/// Returns the number of bytes of `words` words, as files count them.
fn size_of_words(words: usize) -> io::Result<i64> {
    let size = words.checked_mul(WORD);
    size.and_then(|size| i64::try_from(size).ok())
        .ok_or_else(|| invalid("more words than memory has"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl SharedWords {
    /// Creates a memfd of `words` words, all zero; `/proc/PID/fd` shows it by `name`.
    ///
    /// # Errors
    /// `words` is zero or too large, the name has a zero in it or over 249 bytes, or there is no memory.
    pub fn new(name: &str, words: usize) -> io::Result<SharedWords> {
        let name = CString::new(name)?;
        let size = size_of_words(words)?;
        let memory = memfd_create(
            name.as_c_str(),
            MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
        )?;
        ftruncate(&memory, size)?;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals()))?;
        SharedWords::of(memory)
    }

    /// Maps memory that [`SharedWords::new`] made, in this process or in one before it.
    ///
    /// # Errors
    /// The descriptor is not of a memfd, its size may change, or it holds no words.
    pub fn of(memory: OwnedFd) -> io::Result<SharedWords> {
        let found = fcntl(&memory, FcntlArg::F_GET_SEALS);
        let found = found.map_err(|_| invalid("the descriptor is not of a memfd"))?;
        if !SealFlag::from_bits_retain(found).contains(seals()) {
            return Err(invalid("the memory may change its size"));
        }
        SharedWords::map(memory)
    }

    /// Creates a new file of `words` words, all zero. It is not removed, except after an error.
    ///
    /// # Errors
    /// The name exists, `words` is zero or too large, or there is no space.
    pub fn in_file(path: &Path, words: usize) -> io::Result<SharedWords> {
        let size = size_of_words(words)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = OwnedFd::from(options.open(path)?);
        let allocated = posix_fallocate(&file, 0, size).map_err(io::Error::from);
        allocated
            .and_then(|()| SharedWords::map(file))
            .inspect_err(|_| _ = std::fs::remove_file(path))
    }

    /// Maps all of a file whose size does not change.
    fn map(memory: OwnedFd) -> io::Result<SharedWords> {
        let size = usize::try_from(fstat(&memory)?.st_size).unwrap_or_default();
        let room = NonZeroUsize::new(size).filter(|_| size.is_multiple_of(WORD));
        let room = room.ok_or_else(|| invalid("the memory holds no whole words"))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing; seals keep it backed to its end, or
        // nobody but its maker and root may shorten it and its room is taken.
        let start = unsafe { mmap(None, room, protection, MapFlags::MAP_SHARED, &memory, 0) }?;
        Ok(SharedWords {
            memory,
            start: start.cast(),
            words: size / WORD,
        })
    }

    /// Returns all words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `map` mapped so many words at a page's boundary, which `drop` alone takes back; every bit pattern is a word, and
        // whoever else maps the memory meets it by atomics or by system calls.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl AsFd for SharedWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: `map` mapped so many bytes here, and no reference outlives `self`. A refusal would leave memory mapped.
        let _ = unsafe { munmap(self.start.cast(), self.words * WORD) };
    }
}
