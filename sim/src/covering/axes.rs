//! Axes of the covering design.

/// Queue pairs of each pair of hosts.
pub const QUEUE_PAIRS: [u32; 4] = [1, 4, 16, 64];

/// Distances of senders and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// All are so many km apart.
    Km(u32),
    /// Receivers at 1 km and at 101 km share the queue.
    Receivers,
    /// Senders next door and senders 100 km before the queue share it; receivers are 100 km beyond.
    Senders,
}

impl Distance {
    /// Every value.
    pub const ALL: [Distance; 6] = [
        Distance::Km(1),
        Distance::Km(10),
        Distance::Km(100),
        Distance::Km(500),
        Distance::Receivers,
        Distance::Senders,
    ];

    /// Returns the word in names.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Distance::Km(km) => format!("{km}km"),
            Distance::Receivers => "mixed-receivers".to_owned(),
            Distance::Senders => "mixed-senders".to_owned(),
        }
    }

    /// Returns the longest one-way distance in km.
    pub(super) const fn longest(self) -> u32 {
        match self {
            Distance::Km(km) => km,
            Distance::Receivers => 101,
            Distance::Senders => 200,
        }
    }
}

/// Buffer of each switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes of the pool in MB; `None` for one without limit.
    pub megabytes: Option<u32>,
    /// True with PFC.
    pub pfc: bool,
}

impl Buffer {
    /// Every value.
    pub const ALL: [Buffer; 5] = [
        Buffer::of(Some(16), false),
        Buffer::of(Some(16), true),
        Buffer::of(Some(64), false),
        Buffer::of(Some(64), true),
        Buffer::of(None, false),
    ];

    const fn of(megabytes: Option<u32>, pfc: bool) -> Buffer {
        Buffer { megabytes, pfc }
    }

    /// Returns the word in names.
    #[must_use]
    pub fn name(self) -> String {
        let pfc = if self.pfc { "+pfc" } else { "" };
        let pool = |megabytes: u32| format!("{megabytes}MB{pfc}");
        self.megabytes.map_or_else(|| "unlimited".to_owned(), pool)
    }
}

/// Cards of the hosts: half have the first kind, half the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cards {
    /// Name of the mixture, or of the one kind.
    pub name: &'static str,
    /// Sender sets.
    pub senders: [&'static str; 2],
    /// Minimum CNP interval of the second half as receivers, where it is not that of their cards.
    pub second_interval: Option<&'static str>,
}

const fn all(name: &'static str) -> Cards {
    Cards {
        name,
        senders: [name, name],
        second_interval: None,
    }
}

/// Cards and mixtures of them.
pub const CARDS: [Cards; 8] = [
    all("hpcc-vendor"),
    all("hpcc-reset"),
    all("paper"),
    all("mlx"),
    all("mlx-reset"),
    Cards {
        name: "mixed",
        senders: ["hpcc-vendor", "mlx"],
        second_interval: None,
    },
    Cards {
        name: "half-50us",
        senders: ["hpcc-reset", "hpcc-reset"],
        second_interval: Some("50us"),
    },
    Cards {
        name: "half-rtt",
        senders: ["hpcc-reset", "swift"],
        second_interval: None,
    },
];

/// Load of a cell: flows or closed applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// All connections start at once.
    Steady,
    /// Connections start one after the other over a third of the run.
    Joiners,
    /// Short flows of 64 KB beside endless ones.
    Mice,
    /// Each host sends a burst every ms; together they are half of what the link carries.
    Bursts,
    /// 63 senders, one receiver.
    Incast,
    /// READ of 128 KB messages.
    Read,
    /// A link fails, and routes take one with a quarter of its rate.
    Failover,
    /// Half of the CNPs are lost.
    CnpLoss,
    /// All-reduce by a ring across the sites.
    Ring,
    /// All-reduce by halving and doubling.
    Halving,
    /// Exchange of all with all.
    AllToAll,
    /// Writing of a checkpoint with a barrier.
    Checkpoint,
    /// Requests of 1 MB answers.
    Requests,
}

impl Load {
    /// Every value.
    pub const ALL: [Load; 13] = [
        Load::Steady,
        Load::Joiners,
        Load::Mice,
        Load::Bursts,
        Load::Incast,
        Load::Read,
        Load::Failover,
        Load::CnpLoss,
        Load::Ring,
        Load::Halving,
        Load::AllToAll,
        Load::Checkpoint,
        Load::Requests,
    ];

    /// Returns the word in names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Load::Steady => "steady",
            Load::Joiners => "joiners",
            Load::Mice => "mice",
            Load::Bursts => "bursts",
            Load::Incast => "incast",
            Load::Read => "read",
            Load::Failover => "failover",
            Load::CnpLoss => "cnp-loss",
            Load::Ring => "ring",
            Load::Halving => "halving",
            Load::AllToAll => "all-to-all",
            Load::Checkpoint => "checkpoint",
            Load::Requests => "requests",
        }
    }

    /// Returns true for a closed application.
    #[must_use]
    pub const fn is_application(self) -> bool {
        matches!(
            self,
            Load::Ring | Load::Halving | Load::AllToAll | Load::Checkpoint | Load::Requests
        )
    }

    /// Returns false for a load whose topology has one distance: leaves of an incast, two links of a failover.
    #[must_use]
    pub const fn is_at(self, distance: Distance) -> bool {
        matches!(distance, Distance::Km(_)) || !matches!(self, Load::Incast | Load::Failover)
    }

    /// Returns false for more queue pairs than a switch's tables have flows: those of 63 hosts, or of all pairs of eight.
    #[must_use]
    pub const fn has(self, queue_pairs: u32) -> bool {
        match self {
            Load::Incast => queue_pairs <= 16,
            Load::AllToAll => queue_pairs <= 16,
            _ => true,
        }
    }
}
