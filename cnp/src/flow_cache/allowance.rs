//! Allowance of a flow: the packets that may still be shown to the control core. It is one word of the flow's [`Slot`](super::slot::Slot), as almost
//! all of its notable packets, those with AckReq or AETH, are only counted.

/// Number of packets with AckReq or AETH that are shown of a flow not yet paired.
const DETAILS: u8 = 8;
/// Number of changes of a flow's UDP source port that are shown at once between two refreshes.
const CHANGES: u8 = 4;

/// Packets of a flow that may still be shown: see the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Number of notable packets since the last refresh.
    pub(super) seen: u16,
    /// Log2 of the sampling ratio: one notable packet in `2^choice` is chosen. Below 16, as are all fields that follow.
    choice: u8,
    /// Changes of the port that are still shown until the next refresh.
    changes: u8,
    /// First notable packets that are still shown.
    first: u8,
    /// Chosen packets that are still shown until the next refresh.
    again: u8,
}

impl Allowance {
    /// Bits of [`Allowance::seen`] in an allowance as a word.
    pub(super) const SEEN: u32 = 0xffff;
    /// Allowance of a new flow.
    pub(super) const NEW: Allowance = Allowance {
        seen: 0,
        choice: 0,
        changes: CHANGES,
        first: DETAILS,
        again: 0,
    };

    #[inline]
    pub(super) const fn from_word(word: u32) -> Allowance {
        let [low, high, choice, left] = word.to_le_bytes();
        Allowance {
            seen: u16::from_le_bytes([low, high]),
            choice: choice & 15,
            changes: choice >> 4,
            first: left & 15,
            again: left >> 4,
        }
    }

    #[inline]
    pub(super) const fn to_word(self) -> u32 {
        let [low, high] = self.seen.to_le_bytes();
        u32::from_le_bytes([
            low,
            high,
            self.changes << 4 | self.choice,
            self.again << 4 | self.first,
        ])
    }

    /// Counts one more notable packet.
    #[inline]
    pub(super) const fn one_more(self) -> Allowance {
        Allowance {
            seen: self.seen.saturating_add(1),
            ..self
        }
    }

    /// Applies [`Allowance::one_more`] to an allowance as a word, if the packet was `notable`, which is all ones or 0.
    #[inline]
    pub(super) const fn one_more_if(word: u32, notable: u32) -> u32 {
        let has_room = word & Allowance::SEEN != Allowance::SEEN;
        word + (notable & has_room as u32)
    }

    /// Notable packets that an allowance, as a word, still lets be shown, as one of the first or as a chosen one: 0 if none.
    #[inline]
    pub(super) const fn left(word: u32) -> u32 {
        word >> 24
    }

    /// Returns true if a packet with this sequence number is one of the few that are shown: a request and its reply have the same number, so
    /// that both directions show the same few.
    #[inline]
    pub(super) const fn is_chosen(self, psn: u32) -> bool {
        psn.wrapping_mul(0x9e37_79b1).leading_zeros() >= self.choice as u32
    }

    /// Returns true if a change of the port is shown.
    #[inline]
    pub(super) const fn shows_changes(self) -> bool {
        self.changes > 0
    }

    /// Returns true if any notable packet is still shown.
    #[inline]
    pub(super) const fn shows_first(self) -> bool {
        self.first > 0
    }

    /// Returns true if a notable packet with this sequence number is shown again.
    #[inline]
    pub(super) const fn shows_again(self, psn: u32) -> bool {
        self.again > 0 && self.is_chosen(psn)
    }

    /// Takes one from the first packets still to be shown.
    pub(super) const fn first_shown(self) -> Allowance {
        Allowance {
            first: self.first.saturating_sub(1),
            ..self
        }
    }

    /// Takes one from the port changes still to be shown.
    pub(super) const fn change_shown(self) -> Allowance {
        Allowance {
            changes: self.changes.saturating_sub(1),
            ..self
        }
    }

    /// Takes one from the chosen packets still to be shown.
    pub(super) const fn chosen_shown(self) -> Allowance {
        Allowance {
            again: self.again.saturating_sub(1),
            ..self
        }
    }

    /// Starts a refresh period. The sampling ratio becomes such that about `2^more` notable packets are chosen if as many come as in the last period.
    /// At most `2^more` are shown in it, and only while the flow is not paired.
    pub(super) fn refreshed(self, more: u8) -> Allowance {
        let power = self.seen.checked_ilog2().unwrap_or(0);
        Allowance {
            seen: 0,
            choice: u8::try_from(power).unwrap_or(0).saturating_sub(more),
            changes: CHANGES,
            first: self.first,
            again: 1 << more,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_word_holds_all(word: u32) {
            let allowance = Allowance::from_word(word);
            prop_assert_eq!(allowance.to_word(), word);
            prop_assert_eq!(Allowance::one_more_if(word, u32::MAX), allowance.one_more().to_word());
            prop_assert_eq!(Allowance::one_more_if(word, 0), word);
            prop_assert_eq!(Allowance::left(word) > 0, allowance.first > 0 || allowance.again > 0);
        }
    }

    #[test]
    fn the_more_were_seen_the_fewer_are_chosen() {
        let choice = |seen| {
            Allowance {
                seen,
                ..Allowance::NEW
            }
            .refreshed(2)
            .choice
        };
        assert_eq!(
            [0, 1, 7, 8, 15, 16, u16::MAX].map(choice),
            [0, 0, 0, 1, 1, 2, 13]
        );
    }
}
