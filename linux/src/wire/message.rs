//! Messages in a datagram: each a header of 16 octets that says its length.

use super::attribute::{u16_at, u32_at};

/// Octets of a message's header.
pub const HEADER: usize = 16;

/// `NLMSG_ERROR`: an answer, good if its number is zero.
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLMSG_OVERRUN`: messages were lost.
pub const OVERRUN: u16 = 4;

/// `NLM_F_DUMP_INTR`: what is dumped changed meanwhile, so the dump is torn.
pub const TORN: u16 = 0x10;
/// `NLM_F_REPLACE`: in place of what is there.
pub const REPLACE: u16 = 0x100;
/// `NLM_F_APPEND`: behind what is there.
pub const APPEND: u16 = 0x800;

/// One message: what its header says, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`: of the request this answers; notifications have the number of whoever caused them.
    pub sequence: u32,
    /// Behind the header.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Of an `ERROR` or `DONE`, the number of the error, 0 for none; a body that is cut off is `EPROTO`.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match u32_at(self.body, 0) {
            Some(word) => word.cast_signed().saturating_neg(),
            None if self.kind == DONE => 0,
            None => nix::errno::Errno::EPROTO as i32,
        }
    }
}

/// The messages of a datagram, up to the first that is not whole.
///
/// Each takes at least its header, so the walk ends.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let len = usize::try_from(u32_at(rest, 0)?).ok()?;
        let message = Message {
            kind: u16_at(rest, 4)?,
            flags: u16_at(rest, 6)?,
            sequence: u32_at(rest, 8)?,
            body: rest.get(HEADER..len)?,
        };
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_at_the_first_that_is_not_whole() {
        let mut bytes = vec![];
        for (len, kind) in [(20u32, 24u16), (16, 3), (400, 24)] {
            bytes.extend(len.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.resize(bytes.len() + 10, 0);
            bytes.resize(bytes.len() + (len as usize).min(24) - 16, 1);
        }
        let kinds: Vec<_> = messages(&bytes).map(|m| (m.kind, m.body.len())).collect();
        assert_eq!(kinds, [(24, 4), (3, 0)]);
        assert_eq!(messages(&[0; 64]).count(), 0, "a length of nothing");
    }

    #[test]
    fn an_answer_says_its_error() {
        fn of(kind: u16, body: &[u8]) -> Message<'_> {
            Message {
                kind,
                flags: 0,
                sequence: 0,
                body,
            }
        }
        assert_eq!(of(ERROR, &(-17i32).to_ne_bytes()).errno(), 17);
        assert_eq!(of(ERROR, &[0; 4]).errno(), 0);
        assert_eq!(of(DONE, &[]).errno(), 0);
        assert!(of(ERROR, &[]).errno() > 0);
        assert!(of(ERROR, &i32::MIN.to_ne_bytes()).errno() > 0);
    }
}
