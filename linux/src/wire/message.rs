//! Netlink messages in a datagram, each with a header of 16 octets that contains its length.

use super::attribute::{u16_at, u32_at};

/// Octets of a message's header.
pub const HEADER: usize = 16;

/// `NLMSG_ERROR`: an acknowledgement; success if its error number is zero.
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLMSG_OVERRUN`: messages were lost.
pub const OVERRUN: u16 = 4;

/// `NLM_F_DUMP_INTR`: the dumped objects changed meanwhile, so the dump is inconsistent.
pub const TORN: u16 = 0x10;
/// `NLM_F_REPLACE`: replaces an existing object.
pub const REPLACE: u16 = 0x100;
/// `NLM_F_APPEND`: is added behind existing ones.
pub const APPEND: u16 = 0x800;

/// Netlink message: the fields of its header, and its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`: that of the request this answers; notifications carry the number of the request that caused them.
    pub sequence: u32,
    /// Body after the header.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Returns the error number of an `ERROR` or `DONE`, 0 for none; a truncated body is `EPROTO`.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match u32_at(self.body, 0) {
            Some(word) => word.cast_signed().saturating_neg(),
            None if self.kind == DONE => 0,
            None => nix::errno::Errno::EPROTO as i32,
        }
    }
}

/// Iterates over the messages of a datagram, up to the first that is truncated.
///
/// Each takes at least its header, so the iteration ends.
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
