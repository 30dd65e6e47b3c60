//! A worker's cache and a control core, fed with real frames through the real parser.

use std::sync::Arc;

use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::{FlowSlot, FrameBuf, HeapFrame, Meta};
use npcc_pipeline::icrc;
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use crate::admission::CnpRequest;
use crate::control::ControlCore;
use crate::control::command::{ControlCommand, Refused};
use crate::control::config::{ControlConfig, Gate, Settings, WatchedQueueConfig};
use crate::control::queue_state::QueueState;
use crate::detector::DetectorConfig;
use crate::flow_cache::{CacheShared, FlowCache};
use crate::host_rules::HostRules;
use crate::policy::{PolicyInputs, PolicyName};

/// Port toward the senders.
pub(crate) const DC: PortId = PortId(0);
/// Port that congests.
pub(crate) const WAN: PortId = PortId(1);
pub(crate) const QUEUE: Priority = Priority::new(3);
pub(crate) const RATE: BitRate = BitRate(100_000_000_000);

/// Description of a RoCEv2 packet to be built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) src: [u8; 4],
    pub(crate) dst: [u8; 4],
    pub(crate) port: u16,
    pub(crate) opcode: u8,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) payload: usize,
}

impl Packet {
    /// Frame with this change, and the right ICRC.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut [u8])) -> HeapFrame {
        let mut frame = self.frame();
        change(frame.data_mut());
        icrc::seal(frame.data_mut());
        frame
    }

    pub(crate) fn frame(&self) -> HeapFrame {
        let extended = match self.opcode {
            0x06 | 0x0a | 0x0c | 0x2a => 16,
            0x0d | 0x0f..=0x11 => 4,
            0x81 => 16,
            0x64 => 8,
            _ => 0,
        };
        let (src, dst) = (self.src.into(), self.dst.into());
        let mut craft = Craft::roce(src, dst, self.opcode, self.qpn, extended + self.payload);
        craft.src_port = self.port;
        if let Some(bth) = &mut craft.bth {
            (bth.psn, bth.ack_req) = (self.psn, true);
            bth.becn = self.opcode == 0x81;
        }
        HeapFrame::new(&craft.frame())
    }
}

pub(crate) struct Rig {
    pub(crate) cache: FlowCache,
    pub(crate) core: ControlCore,
    pub(crate) now: Nanos,
    pub(crate) sent: Vec<CnpRequest>,
    /// Queue that packets enter.
    pub(crate) queue: Priority,
    seen: Arc<CacheShared>,
}

/// Watched queue with thresholds of 100 KB (shallow), 400 KB (deep) and 800 KB (hard).
pub(crate) fn queue(tick: Nanos) -> WatchedQueueConfig {
    let detector = DetectorConfig {
        shallow: 100_000,
        deep: 400_000,
        hard: 800_000,
        filter: 2,
        tick,
        drain: RATE,
        mtu: 1_100,
    };
    let policy = PolicyName::Npcc.new_policy(&PolicyInputs {
        tick,
        ..PolicyInputs::default()
    });
    WatchedQueueConfig::new((WAN, QUEUE), detector, policy)
}

pub(crate) fn config(tick: Nanos) -> ControlConfig {
    ControlConfig {
        settings: Settings {
            queues: vec![queue(tick)],
            port_rates: vec![RATE, RATE],
            hosts: HostRules::all_answer(),
            // A rig's flows are a few frames each, and answered at once.
            earned: 0,
            gate: Gate::Off,
            ..Settings::default()
        },
        tick,
        flows: 8_192,
        ends: 16_384,
        ..ControlConfig::default()
    }
}

/// [`config`] with other settings.
pub(crate) fn with(tick: Nanos, change: impl FnOnce(&mut Settings)) -> ControlConfig {
    let mut config = config(tick);
    change(&mut config.settings);
    config
}

impl Rig {
    pub(crate) fn new(config: &ControlConfig) -> Rig {
        Rig::of_slots(32_768, config)
    }

    /// Rig whose worker has this many slots.
    pub(crate) fn of_slots(slots: usize, config: &ControlConfig) -> Rig {
        let queues = &config.settings.queues;
        let watched = queues
            .iter()
            .fold(0, |ports, queue| ports | queue.port.bit());
        let (cache, reader) = FlowCache::new(slots, watched, 65_536, 11);
        let seen = reader.shared();
        let mut core = ControlCore::new(config);
        assert!(core.attach(reader));
        Rig {
            cache,
            core,
            now: Nanos::from_millis(1),
            sent: Vec::new(),
            queue: QUEUE,
            seen,
        }
    }

    /// Number of packets with a wrong ICRC that came in by this port and would have been shown.
    pub(crate) fn damaged_by(&self, port: PortId) -> u64 {
        self.seen.damaged_by(port)
    }

    /// Number of QP1 packets that came in by this port and were lost on the way to the control core.
    pub(crate) fn messages_lost_by(&self, port: PortId) -> u64 {
        self.seen.messages_lost_by(port)
    }

    /// Changes the control core's settings.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Settings)) -> Result<(), Refused> {
        let mut settings = self.core.settings().clone();
        change(&mut settings);
        let command = ControlCommand::Configure(Box::new(settings));
        self.core.execute(&command, self.now)
    }

    /// Strikes a frame of this slot's flow; returns true if the strike is owed to its sender.
    pub(crate) fn owes(&mut self, slot: FlowSlot) -> bool {
        let meta = Meta {
            slot,
            ..Meta::of(1_082, DC, WAN, self.queue)
        };
        self.cache.owe(&meta)
    }

    /// Returns true if the next frame of this slot's flow carries a returned strike.
    pub(crate) fn redeems(&mut self, slot: FlowSlot) -> bool {
        self.cache.redeem(slot)
    }

    /// Passes a packet from the senders' side, which is queued on the port that congests.
    pub(crate) fn out(&mut self, packet: &Packet) -> FlowSlot {
        self.pass(packet, DC, WAN)
    }

    /// Passes a packet that comes back.
    pub(crate) fn back(&mut self, packet: &Packet) -> FlowSlot {
        self.pass(packet, WAN, DC)
    }

    pub(crate) fn pass(&mut self, packet: &Packet, ingress: PortId, egress: PortId) -> FlowSlot {
        self.pass_frame(&packet.frame(), ingress, egress)
    }

    pub(crate) fn pass_frame(
        &mut self,
        frame: &HeapFrame,
        ingress: PortId,
        egress: PortId,
    ) -> FlowSlot {
        let parsed = parse(frame.data()).unwrap();
        let roce = parsed.roce.unwrap();
        let meta = Meta::of(frame.data().len(), ingress, egress, self.queue);
        let sighting = Sighting {
            data: frame.data(),
            addresses: parsed.addresses_v4,
            parsed: &parsed,
            roce,
            meta: &meta,
            now: self.now,
        };
        self.cache.see(&sighting)
    }

    /// Advances time, and runs a tick at a queue of this depth; returns the number of CNPs.
    pub(crate) fn tick(&mut self, time: Nanos, depth: u64) -> usize {
        self.tick_at(time, depth.into())
    }

    /// Advances time, and runs a tick at a queue of this level, which may be paused; returns the number of CNPs.
    pub(crate) fn tick_at(&mut self, time: Nanos, level: QueueState) -> usize {
        self.now += time;
        let before = self.sent.len();
        let sent = &mut self.sent;
        self.core.run_call(self.now, |_, _| level, &mut |order| {
            sent.push(order);
            Ok(())
        });
        self.sent.len() - before
    }
}
