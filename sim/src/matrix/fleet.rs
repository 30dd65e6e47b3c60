//! The fleets of the matrix: which cards the sending hosts have.

/// The cards of the sending hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fleet {
    pub(super) name: &'static str,
    /// One host in two has the second, or one in four where there is an enemy of the others among them.
    pub(super) senders: [&'static str; 2],
    pub(super) second_in: u32,
    /// Shortest time between two CNPs of the receivers of the second, where it is not that of their cards.
    pub(super) second_cnp_interval: Option<&'static str>,
    pub(super) judged: bool,
}

pub(super) const fn all(name: &'static str) -> Fleet {
    Fleet {
        name,
        senders: [name, name],
        second_in: 0,
        second_cnp_interval: None,
        judged: true,
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
    mix("some-deaf", "hpcc-vendor", "deaf", 4),
    mix("some-rtt", "hpcc-reset", "swift", 4),
    mix("half-rtt", "hpcc-reset", "swift", 2),
    // Receivers of both kinds: 4 us, and 50 us as the DCQCN paper has it.
    Fleet {
        second_cnp_interval: Some("50us"),
        ..mix("half-50us", "hpcc-reset", "hpcc-reset", 2)
    },
    // The byte counter of 32,767 read as bytes: no scheme holds such a card, and DCQCN itself would not work with it.
    Fleet {
        judged: false,
        ..all("mlx-bytes")
    },
];

impl Fleet {
    /// Whether its timers take tens of milliseconds to win a cut back.
    pub(super) fn is_slow(&self) -> bool {
        self.senders.contains(&"paper")
    }
}
