use super::*;
use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::Priority;
use npcc_pipeline::wire::bth::RoceClass;
use npcc_roce::key::Qpn;
use npcc_roce::sample::{SampleFlags, SlotRef};

const NEAR: &str = "10.0.1.3";
const FAR: &str = "10.0.2.2";
const DC: PortId = PortId(0);
const WAN: PortId = PortId(1);

fn to_near(qpn: u32) -> FlowKey {
    FlowKey::new(FAR.parse().unwrap(), NEAR.parse().unwrap(), Qpn::new(qpn))
}

/// Key of a flow of the near host.
fn flow() -> FlowKey {
    FlowKey::new(NEAR.parse().unwrap(), FAR.parse().unwrap(), Qpn::new(0x11))
}

fn record(key: FlowKey, psn: u32, us: u64, (ingress, egress): (PortId, PortId)) -> PacketSample {
    let opcode = if egress == DC { 0x0c } else { 0x10 };
    PacketSample {
        key,
        time: Nanos::from_micros(us),
        slot: SlotRef {
            slot: FlowSlot(1),
            generation: 2,
        },
        packets: 1,
        psn,
        source_qp: None,
        udp_port: 50_000,
        wire_len: 100,
        opcode,
        class: RoceClass::of(opcode, 0x11),
        flags: SampleFlags::default(),
        syndrome: None,
        ingress,
        egress,
        priority: Priority::new(3),
    }
}

struct Side(HostRtt);

impl Side {
    fn new() -> Side {
        Side(HostRtt::new(5))
    }

    fn record_request(&mut self, psn: u32, us: u64) {
        self.0
            .record_request(&record(to_near(0x18), psn, us, (WAN, DC)));
    }

    fn record_reply(&mut self, psn: u32, us: u64) {
        let reply = record(flow(), psn, us, (DC, WAN));
        self.0.record_reply(&reply, &to_near(0x18));
    }

    /// Passes `n` requests, each answered after `us` microseconds.
    fn exchange(&mut self, from: u32, n: u32, us: u64) {
        for psn in from..from + n {
            let at = u64::from(psn) * 10_000;
            self.record_request(psn, at);
            self.record_reply(psn, at + us);
        }
    }

    fn us(&self) -> Option<u64> {
        self.0.delay(&flow()).map(|delay| delay.0 / 1_000)
    }
}

#[test]
fn a_reply_to_the_bit_gives_the_delay_of_its_host_only() {
    let mut side = Side::new();
    side.exchange(7, 1, 33);
    assert_eq!(side.us(), Some(33));
    let other = FlowKey::new(
        "10.0.1.4".parse().unwrap(),
        FAR.parse().unwrap(),
        Qpn::new(0x11),
    );
    assert_eq!(side.0.delay(&other), None);
    assert_eq!(
        side.0.delay(&to_near(0x18)),
        None,
        "the far host's is not known"
    );
}

#[test]
fn workers_may_show_the_reply_first() {
    let mut side = Side::new();
    side.record_reply(7, 133);
    side.record_request(7, 100);
    assert_eq!(side.us(), Some(33));
}

#[test]
fn what_cannot_be_its_reply_is_none() {
    let mut side = Side::new();
    side.record_request(7, 100);
    side.record_reply(8, 110);
    // Of another connection of the same host.
    side.0
        .record_reply(&record(flow(), 7, 110, (DC, WAN)), &to_near(0x19));
    // Made up on the far side, in the near host's name.
    side.0
        .record_reply(&record(flow(), 7, 110, (WAN, DC)), &to_near(0x18));
    side.0
        .record_reply(&record(flow(), 7, 110, (PortId(2), WAN)), &to_near(0x18));
    assert_eq!(side.us(), None);
    side.record_reply(7, 140);
    assert_eq!(side.us(), Some(40));
    // Long ago.
    side.record_request(9, 1_000);
    side.record_reply(9, 6_001);
    assert_eq!(side.us(), Some(40));
}

#[test]
fn a_psn_requested_twice_proves_nothing() {
    for again in [1, 2, 3] {
        let mut side = Side::new();
        (0..=again).for_each(|n| side.record_request(7, 100 + n * 50));
        side.record_reply(7, 100 + again * 50 + 5);
        side.record_reply(7, 100 + again * 50 + 30);
        assert_eq!(side.us(), None, "{again}");
    }
    // Nor does the second of two replies.
    let mut side = Side::new();
    side.record_request(7, 100);
    side.record_reply(7, 120);
    side.record_request(7, 150);
    side.record_reply(7, 153);
    assert_eq!(side.us(), Some(20));
}

#[test]
fn the_second_shortest_of_eight_counts() {
    let mut side = Side::new();
    for (at, us) in [70, 30, 90, 31, 50, 60, 32, 40].into_iter().enumerate() {
        side.exchange(u32::try_from(at).unwrap(), 1, us);
    }
    assert_eq!(side.us(), Some(31));
    // The way has become longer: eight delays later nothing is left of the old ones.
    side.exchange(10, 8, 200);
    assert_eq!(side.us(), Some(200));
}

#[test]
fn no_delay_is_out_of_bounds() {
    for (us, learned) in [(1, Some(2)), (4_999, Some(4_999)), (5_001, None)] {
        let mut side = Side::new();
        side.exchange(1, 3, us);
        assert_eq!(side.us(), learned, "{us}");
    }
}

#[test]
fn a_flood_of_hosts_costs_the_oldest() {
    let mut side = Side::new();
    side.exchange(1, 1, 30);
    for n in 0..u32::try_from(HOSTS).unwrap() {
        let [_, _, high, low] = n.to_be_bytes();
        let host = [10, 7, high, low].into();
        let key = FlowKey::new(FAR.parse().unwrap(), host, Qpn::new(0x18));
        let reply = FlowKey::new(host, FAR.parse().unwrap(), Qpn::new(0x11));
        side.0.record_request(&record(key, 5, 100, (WAN, DC)));
        side.0.record_reply(&record(reply, 5, 125, (DC, WAN)), &key);
    }
    assert_eq!(side.us(), None);
    let last = FlowKey::new(
        "10.7.15.255".parse().unwrap(),
        FAR.parse().unwrap(),
        Qpn::new(1),
    );
    assert_eq!(side.0.delay(&last), Some(Nanos::from_micros(25)));
}
