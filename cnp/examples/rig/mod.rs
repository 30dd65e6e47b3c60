//! Common start of both measurements of the control core: its configuration, and packets whose fields change.

use npcc_cnp::control::config::{ControlConfig, Settings, WatchedQueueConfig};
use npcc_cnp::defaults;
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::{FlowSlot, Meta};
use npcc_pipeline::icrc;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

/// Allocator, as in the switch.
#[global_allocator]
static HEAP: npcc_heap::HugeHeap = npcc_heap::HugeHeap;

pub(crate) const NEAR: PortId = PortId(0);
pub(crate) const WAN: PortId = PortId(1);
pub(crate) const TICK: Nanos = defaults::TICK;
pub(crate) const HARD: u64 = 3_000_000;
/// Number of records processed in a tick, and of new endpoints.
pub(crate) const KNOWN: u32 = 512;
pub(crate) const NEW: u32 = 64;
pub(crate) const READ_RESPONSE_MIDDLE: u8 = 0x0e;
const RATE: BitRate = BitRate(100_000_000_000);

/// Offset of the destination queue pair in a crafted IPv4 frame.
pub(crate) const DEST_QP: usize = 47;

/// Configuration with one watched queue, room for this many flows and their endpoints, and no limit to new ones.
pub(crate) fn config(flows: u32) -> ControlConfig {
    ControlConfig {
        settings: Settings {
            queues: vec![WatchedQueueConfig::new(
                (WAN, Priority::new(3)),
                DetectorConfig {
                    shallow: RATE.bytes_in(defaults::SHALLOW),
                    deep: RATE.bytes_in(defaults::DEEP),
                    hard: HARD,
                    filter: 2,
                    tick: TICK,
                    drain: RATE,
                    mtu: 4_200,
                },
                PolicyName::Npcc.defaults(),
            )],
            port_rates: vec![RATE, RATE],
            ..Settings::default()
        },
        // Those that nobody answers have three quarters of the table.
        flows: flows as usize / 3 * 4 + 4,
        ends: 2 * flows as usize,
        new_flows: u64::MAX,
        new_flows_burst: u64::MAX,
        ..ControlConfig::default()
    }
}

/// Scatters `n` over 24 bits, one to one.
pub(crate) const fn scattered(n: u32) -> u32 {
    let once = n.wrapping_mul(0x5b_d1e5) & 0xff_ffff;
    (once ^ once >> 11).wrapping_mul(0x85_eb6b) & 0xff_ffff
}

/// A frame whose fields change.
pub(crate) struct Packets {
    pub(crate) frame: Vec<u8>,
    from: PortId,
    to: PortId,
}

impl Packets {
    pub(crate) fn new(opcode: u8, payload: usize, from: PortId, to: PortId) -> Packets {
        let (src, dst) = ([10, 0, 0, 0], [10, 9, 2, 2]);
        Packets {
            frame: Craft::roce(src.into(), dst.into(), opcode, 1, payload).frame(),
            from,
            to,
        }
    }

    /// Writes the low octets of a number, and updates the ICRC.
    pub(crate) fn put<const N: usize>(&mut self, at: usize, value: u32) {
        let bytes = value.to_be_bytes();
        self.frame[at..at + N].copy_from_slice(&bytes[4 - N..]);
        icrc::seal(&mut self.frame);
    }

    #[inline(never)]
    pub(crate) fn show(&self, cache: &mut FlowCache, now: Nanos) -> FlowSlot {
        let parsed = parse(&self.frame).unwrap();
        let meta = Meta::of(self.frame.len(), self.from, self.to, Priority::new(3));
        cache.see(&Sighting {
            data: &self.frame,
            addresses: parsed.addresses_v4,
            parsed: &parsed,
            roce: parsed.roce.unwrap(),
            meta: &meta,
            now,
        })
    }
}
