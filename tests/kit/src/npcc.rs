//! Hosts on both sides of a switch, as NPCC sees them: frames through the real parser, a worker's flow cache and the control core.

use npcc_cnp::admission::CnpRequest;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::{ControlConfig, Settings, WatchedQueueConfig};
use npcc_cnp::control::queue_state::QueueState;
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::policy::PolicyKind;
use npcc_pipeline::frame::Meta;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{BitRate, Nanos, Priority};

pub use crate::two_ports::{DC, WAN};

/// Priority of the queue that NPCC watches.
pub const QUEUE: Priority = Priority::new(3);
/// Time between two ticks.
pub const TICK: Nanos = Nanos::from_micros(20);

/// Returns settings that watch the queue of [`WAN`], with these depths for shallow, deep and hard in bytes, drained at this rate.
#[must_use]
pub fn settings(depths: [u64; 3], drain: BitRate, policy: PolicyKind) -> Settings {
    let [shallow, deep, hard] = depths;
    let detector = DetectorConfig {
        shallow,
        deep,
        hard,
        filter: 2,
        tick: TICK,
        drain,
        mtu: 4_200,
    };
    Settings {
        queues: vec![WatchedQueueConfig::new((WAN, QUEUE), detector, policy)],
        port_rates: vec![drain, drain],
        ..Settings::default()
    }
}

/// A worker's flow cache and the control core that reads it.
#[derive(Debug)]
pub struct World {
    /// Cache of the flows seen.
    pub cache: FlowCache,
    /// Control core.
    pub core: ControlCore,
    /// Time of the next frame and of the last tick.
    pub now: Nanos,
}

impl World {
    /// Creates a world at 1 ms with a cache of `flows` slots.
    ///
    /// # Panics
    ///
    /// Panics if the core refuses its first cache, which is a defect.
    #[must_use]
    pub fn new(settings: Settings, flows: usize) -> World {
        let mut core = ControlCore::new(&ControlConfig {
            tick: TICK,
            settings,
            ..ControlConfig::default()
        });
        let (cache, reader) = FlowCache::new(flows, WAN.bit(), 65_536, 11);
        assert!(core.attach(reader), "the first cache is refused");
        World {
            cache,
            core,
            now: Nanos::from_millis(1),
        }
    }

    /// Passes a frame of the senders' side (`out`), or of the far side. One that is no RoCEv2 is not seen.
    pub fn pass(&mut self, frame: &[u8], out: bool) {
        let (ingress, egress) = if out { (DC, WAN) } else { (WAN, DC) };
        let Ok(parsed) = parse(frame) else { return };
        let Some(roce) = parsed.roce else { return };
        let meta = Meta::of(frame.len(), ingress, egress, QUEUE);
        self.cache.see(&Sighting {
            data: frame,
            addresses: parsed.addresses_v4,
            parsed: &parsed,
            roce,
            meta: &meta,
            now: self.now,
        });
    }

    /// Runs a tick at a queue in this state; `sent` gets each CNP.
    pub fn tick(&mut self, state: impl Into<QueueState>, mut sent: impl FnMut(&CnpRequest)) {
        let state = state.into();
        self.core.run_call(self.now, |_, _| state, &mut |request| {
            sent(&request);
            Ok(())
        });
    }
}
