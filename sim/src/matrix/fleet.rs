//! Fleets of the matrix: the cards of the sending hosts.

/// Mix of cards of the sending hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fleet {
    pub(super) name: &'static str,
    /// Sender sets: one host in two has the second, or one in four where it is hostile to the others.
    pub(super) senders: [&'static str; 2],
    pub(super) second_in: u32,
    /// Minimum CNP interval of the receivers of the second, where it is not that of their cards.
    pub(super) second_cnp_interval: Option<&'static str>,
}

pub(super) const fn all(name: &'static str) -> Fleet {
    Fleet {
        name,
        senders: [name, name],
        second_in: 0,
        second_cnp_interval: None,
    }
}

const fn mix(name: &'static str, first: &'static str, second: &'static str, in_: u32) -> Fleet {
    Fleet {
        name,
        senders: [first, second],
        second_in: in_,
        ..all(name)
    }
}

pub(super) const ALL: [Fleet; 11] = [
    all("hpcc-vendor"),
    all("hpcc-reset"),
    all("paper"),
    all("mlx"),
    all("mlx-reset"),
    mix("mixed", "hpcc-vendor", "mlx", 2),
    mix("some-deaf", "hpcc-vendor", "uncontrolled", 4),
    mix("some-rtt", "hpcc-reset", "swift", 4),
    mix("half-rtt", "hpcc-reset", "swift", 2),
    // Receivers with both CNP intervals: 4 us, and 50 us as in the DCQCN paper.
    Fleet {
        second_cnp_interval: Some("50us"),
        ..mix("half-50us", "hpcc-reset", "hpcc-reset", 2)
    },
    // The byte counter of 32,767 read as bytes: no known card, but DCQCN and the policies hold it.
    all("mlx-bytes"),
];

impl Fleet {
    /// Returns true if its timers take tens of milliseconds to recover from a cut.
    pub(super) fn is_slow(&self) -> bool {
        self.senders.contains(&"paper")
    }
}
