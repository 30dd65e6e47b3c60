//! Limits on who may teach, and how much: floods of made-up packets, and packets with another host's address.

use std::net::IpAddr;

use npcc_pipeline::frame::{FrameBuf, HeapFrame};
use npcc_pipeline::units::{MAX_PORTS, Nanos};

use crate::action::HostSet;
use crate::admission::Suppressed;
use crate::control::config::ControlConfig;
use crate::host_rules::HostRules;
use crate::table::IDLE;
use crate::traffic_tests::rig::{DC, Packet, Rig, WAN, config, with};
use crate::uncounted::Uncounted;
use npcc_pipeline::icrc;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::port_hash::port_of;
use npcc_roce::source_check::{Routes, Sides};

const TICK: Nanos = Nanos::from_micros(20);
const SENDER: u32 = 0x18;
const RECEIVER: u32 = 0x11;
const TABLE: u32 = 64;

fn data() -> Packet {
    Packet {
        src: [10, 0, 1, 3],
        dst: [10, 0, 2, 2],
        port: port_of(Qpn::new(SENDER), Qpn::new(RECEIVER)),
        opcode: 0x0a,
        qpn: RECEIVER,
        psn: 0,
        payload: 1024,
    }
}

fn ack() -> Packet {
    Packet {
        src: data().dst,
        dst: data().src,
        opcode: 0x11,
        qpn: SENDER,
        payload: 0,
        ..data()
    }
}

/// A packet of a connection that does not exist.
fn made_up(source: u8, n: u32) -> Packet {
    Packet {
        src: [10, 0, 1, source],
        port: 50_000,
        qpn: 0x1000 + n,
        ..data()
    }
}

fn small() -> ControlConfig {
    ControlConfig {
        flows: TABLE as usize,
        ends: 4_096,
        ..config(TICK)
    }
}

/// Passes many packets of made-up connections in the name of `hosts` hosts, all within this time.
fn flood(rig: &mut Rig, hosts: u8, time: Nanos) {
    let hosts = u32::from(hosts);
    for n in 0..4 * TABLE {
        let [.., host] = (100 + n % hosts).to_be_bytes();
        rig.out(&made_up(host, n));
        if n % 32 == 31 {
            rig.tick(Nanos(time.0 / 8), 0);
        }
    }
}

/// Number of flows with evidence.
fn answered(rig: &Rig) -> usize {
    let flows = rig.core.flows();
    let with = flows.flows().filter(|flow| flow.evidence != Evidence::None);
    with.count()
}

/// Regression: flows without an answer filled the table, and later flows were not seen for as long as they went on.
#[test]
fn a_flood_of_made_up_flows_leaves_room_for_those_that_are_answered() {
    let mut rig = Rig::new(&small());
    flood(&mut rig, 16, Nanos::from_millis(1));
    let status = rig.core.status();
    assert_eq!(status.flows.get(), u64::from(TABLE - TABLE / 4));
    assert!(Uncounted::NoRoom.pick(&status.uncounted).records.get() > u64::from(TABLE));
    rig.back(&ack());
    rig.out(&data());
    rig.tick(TICK, 0);
    rig.out(&data());
    assert_eq!(rig.tick(TICK, 900_000), 1);
    assert_eq!(rig.sent[0].sender_qpn, Qpn::new(SENDER));
}

#[test]
fn one_source_has_what_nobody_may_have_answered_and_makes_room_for_another() {
    let mut rig = Rig::new(&small());
    flood(&mut rig, 1, Nanos::from_millis(1));
    let status = rig.core.status();
    let unanswered = u64::from(TABLE - TABLE / 4);
    assert_eq!(status.flows.get(), unanswered);
    assert_eq!(status.flows_displaced.get(), 0, "none of its own");
    // Its answered flows have the whole table.
    rig.back(&Packet {
        dst: [10, 0, 1, 100],
        ..ack()
    });
    rig.tick(TICK, 0);
    rig.out(&Packet {
        src: [10, 0, 1, 100],
        ..data()
    });
    rig.tick(TICK, 0);
    assert_eq!(status.flows.get(), unanswered + 1);
    let (known, displaced) = (status.flows.get(), status.flows_displaced.get());
    rig.out(&made_up(3, 9_999));
    rig.tick(TICK, 0);
    assert_eq!(status.flows_displaced.get(), displaced + 1, "another's");
    assert_eq!(status.flows.get(), known);
}

/// Law: flows without an answer that have all their places displace no answered one, however long that was silent.
#[test]
fn a_flood_takes_no_place_of_an_answered_flow_that_is_silent() {
    let mut rig = Rig::new(&small());
    rig.back(&ack());
    rig.out(&data());
    rig.tick(TICK, 0);
    rig.tick(IDLE, 0);
    flood(&mut rig, 1, Nanos::from_millis(1));
    let status = rig.core.status();
    assert!(status.flows_refused.get() > u64::from(TABLE));
    assert_eq!(answered(&rig), 1);
}

#[test]
fn forged_flows_make_room_soon_and_answered_ones_stay() {
    let mut rig = Rig::new(&small());
    rig.back(&ack());
    rig.out(&data());
    rig.tick(TICK, 0);
    flood(&mut rig, 16, Nanos::from_millis(1));
    let status = rig.core.status();
    assert_eq!(status.flows_displaced.get(), 0, "all were just seen");
    rig.tick(Nanos::from_millis(100), 0);
    rig.out(&made_up(3, 9_999));
    rig.tick(TICK, 0);
    assert_eq!(status.flows_displaced.get(), 1);
    flood(&mut rig, 16, IDLE);
    assert!(status.flows_displaced.get() > u64::from(TABLE));
    assert_eq!(answered(&rig), 1, "however many come and go");
    // At last, flows without an answer are forgotten.
    rig.tick(Nanos::from_millis(6_100), 0);
    for _ in 0..TABLE / 8 {
        rig.tick(TICK, 0);
    }
    assert_eq!(status.flows.get(), 1);
}

/// Law: bytes that were counted before a flow was entered are not counted as the flow's.
#[test]
fn bytes_of_a_contributor_without_an_entry_are_counted_once() {
    let mut rig = Rig::new(&ControlConfig {
        new_flows: 1,
        new_flows_burst: 1,
        ..config(TICK)
    });
    rig.out(&made_up(3, 1));
    let mut wire = 0;
    for _ in 0..100 {
        let packet = made_up(3, 2);
        wire += 1_024 + 16 + 12 + 8 + 20 + 14 + 4 + 4 + 20;
        rig.out(&packet);
        rig.tick(Nanos::from_millis(11), 0);
    }
    let status = rig.core.status();
    // A bucket fills again after a second: the flow is entered then.
    assert_eq!(status.flows.get(), 2);
    for _ in 0..100 {
        rig.tick(Nanos::from_millis(10), 0);
    }
    let aside = Uncounted::RateLimited.pick(&status.uncounted).bytes.get();
    let first = wire / 100;
    assert!(aside > 80 * first, "{aside}");
    assert_eq!(aside + status.data_bytes.get(), wire + first);
}

/// Routes to 10.0.1.0/24 by the port toward the senders, and to everything else by the other.
#[derive(Debug)]
struct Near;

impl Routes for Near {
    fn refresh(&mut self) -> u64 {
        0
    }

    fn ports_toward(&self, host: IpAddr) -> u32 {
        match host {
            IpAddr::V4(host) if host.octets().starts_with(&[10, 0, 1]) => DC.bit(),
            _ => WAN.bit(),
        }
    }
}

fn sides() -> Sides {
    let mut sides = [0; MAX_PORTS];
    sides[DC.index()] = DC.bit();
    sides[WAN.index()] = WAN.bit();
    sides
}

/// A rig that checks where sources lie.
pub(crate) fn checked(mut config: ControlConfig) -> Rig {
    config.settings.source_sides = sides();
    let mut rig = Rig::new(&config);
    rig.core.know_routes(Box::new(Near));
    rig
}

/// Regression: a packet from the far side with a near host's address, and the other way round, was believed.
#[test]
fn a_packet_with_an_address_of_the_other_side_teaches_nothing() {
    let mut rig = checked(config(TICK));
    rig.out(&data());
    rig.tick(TICK, 0);
    // An answer in the far host's name, by the near port.
    rig.pass(&ack(), DC, WAN);
    rig.tick(TICK, 0);
    let status = rig.core.status();
    assert_eq!(status.wrong_port.get(), 1);
    rig.out(&data());
    assert_eq!(rig.tick(TICK, 900_000), 0, "still cold");
    // Data in the near host's name, by the far port.
    rig.pass(
        &Packet {
            qpn: 0x77,
            ..data()
        },
        WAN,
        WAN,
    );
    rig.tick(TICK, 0);
    assert_eq!((status.wrong_port.get(), status.flows.get()), (2, 1));
    let aside = Uncounted::WrongPort.pick(&status.uncounted).bytes.get();
    assert!(aside > 1_000 && status.uncounted_bytes_by(WAN) == aside);
    // The living flow is as it was when such a packet has its very key.
    rig.back(&ack());
    rig.tick(TICK, 0);
    rig.pass(&Packet { port: 1, ..data() }, WAN, WAN);
    rig.out(&data());
    assert_eq!(rig.tick(TICK, 950_000), 1);
    assert_eq!(rig.sent[0].ingress, DC);
}

/// Regression: 20,000 packets a second with a host's address used up the host's rate of new entries.
#[test]
fn a_forged_source_does_not_use_up_a_hosts_right_to_begin() {
    for source_check in [false, true] {
        let limited = ControlConfig {
            new_flows: 1_000,
            new_flows_burst: 10,
            ..config(TICK)
        };
        let mut rig = if source_check {
            checked(limited)
        } else {
            Rig::new(&limited)
        };
        for n in 0..200 {
            rig.pass(&made_up(3, n), WAN, WAN);
        }
        rig.tick(TICK, 0);
        let status = rig.core.status();
        let refused = (status.rate_limited.get(), status.wrong_port.get());
        let expected = if source_check { (0, 200) } else { (190, 0) };
        assert_eq!(refused, expected);
        let before = status.flows.get();
        for n in 300..310 {
            rig.out(&made_up(3, n));
        }
        rig.tick(TICK, 0);
        assert_eq!(status.flows.get(), before + 10);
    }
}

/// CNP of the receiver to the sender of the data.
fn cnp() -> Packet {
    Packet {
        opcode: 0x81,
        ..ack()
    }
}

/// Regression: a receiver's CNPs that the sender's card throws away kept the switch from signalling that sender, and from marking it.
#[test]
fn only_a_whole_cnp_of_the_receiver_counts_as_one() {
    let signalled_beside = |damage: &dyn Fn(&mut [u8])| {
        let mut rig = Rig::new(&config(TICK));
        rig.out(&data());
        rig.back(&ack());
        rig.tick(TICK, 0);
        let mut frame = cnp().frame().data().to_vec();
        damage(&mut frame);
        rig.pass_frame(&HeapFrame::new(&frame), WAN, DC);
        rig.out(&data());
        // Sooner than it would be signalled twice.
        let signalled = rig.tick(Nanos(TICK.0 / 2), 900_000);
        let status = rig.core.status();
        (
            signalled,
            status.cnps_passed.get(),
            status.cnps_damaged.get(),
            rig.damaged_by(WAN),
        )
    };
    let bth = 14 + 20 + 8;
    assert_eq!(
        signalled_beside(&|_| {}),
        (0, 1, 0, 0),
        "it was told already"
    );
    let wrong = |frame: &mut [u8]| *frame.last_mut().unwrap() ^= 1;
    assert_eq!(signalled_beside(&wrong), (1, 0, 0, 1));
    let unset = |frame: &mut [u8]| {
        frame[bth + 4] = 0;
        icrc::seal(frame);
    };
    assert_eq!(signalled_beside(&unset), (1, 0, 1, 0), "no BECN");
}

#[test]
fn a_denied_host_is_not_signalled_until_it_is_allowed_again() {
    let set = |prefix: [u8; 4], length| HostSet::new([(IpAddr::from(prefix), length)]);
    let deny = HostRules {
        deny: set(data().src, 32),
        ..HostRules::all_answer()
    };
    let others = HostRules {
        allow: set([10, 0, 7, 0], 24),
        ..HostRules::all_answer()
    };
    let mut rig = Rig::new(&with(TICK, |settings| settings.hosts = deny));
    rig.out(&data());
    rig.back(&ack());
    rig.tick(TICK, 0);
    let mut before = 0;
    let mut signalled = |rules: Option<HostRules>, depth| {
        if let Some(rules) = rules {
            rig.configure(|settings| settings.hosts = rules).unwrap();
        }
        rig.out(&data());
        let signalled = rig.tick(Nanos::from_micros(80), depth);
        let denied = rig.core.status().cnps_suppressed(Suppressed::HostDenied);
        (signalled, denied > std::mem::replace(&mut before, denied))
    };
    assert_eq!(signalled(None, 900_000), (0, true));
    assert_eq!(
        signalled(Some(HostRules::all_answer()), 900_100),
        (1, false)
    );
    assert_eq!(signalled(Some(others), 900_200), (0, true));
}
