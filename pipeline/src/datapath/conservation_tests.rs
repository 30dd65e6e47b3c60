//! The conservation law, for any traffic.

use proptest::prelude::*;

use super::super::*;
use super::punted_rig::{PLENTY, with_linux};
use super::{DC, WAN, assert_conserved, data, mac, path, pull, push};
use crate::craft::{BthFields, Craft};
use crate::frame::HeapFrame;
use crate::punt::{Place, PuntClass, PuntRates};

#[derive(Debug, Clone)]
enum Event {
    Frame {
        from: u8,
        dst: u8,
        opcode: u8,
        tos: u8,
        ttl: u8,
        payload: usize,
        tag: Option<u16>,
        trailer: usize,
        damage: Option<(usize, u8)>,
    },
    Send(u8, u64),
    Originate,
    /// ARP frame; true if it has a VLAN tag.
    Arp(u8, bool),
    /// Frame sent by Linux: true if control, VLAN, length.
    Inject(bool, u16, usize),
    /// Linux reads its queues.
    Read,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let frame = (
        0u8..2,
        0u8..9,
        any::<u8>(),
        any::<u8>(),
        prop_oneof![4 => Just(64u8), 1 => 0u8..3],
        0usize..4300,
        prop::option::of(98u16..102),
        prop_oneof![3 => Just(0usize), 1 => 1usize..5000],
        prop::option::of((0usize..60, any::<u8>())),
    )
        .prop_map(
            |(from, dst, opcode, tos, ttl, payload, tag, trailer, damage)| Event::Frame {
                from,
                dst,
                opcode,
                tos,
                ttl,
                payload,
                tag,
                trailer,
                damage,
            },
        );
    let event = prop_oneof![8 => frame, 3 => (0u8..2, 0u64..20_000).prop_map(|(port, after)| Event::Send(port, after)), 1 => Just(Event::Originate), 1 => (0u8..2, any::<bool>()).prop_map(|(port, tagged)| Event::Arp(port, tagged)),
        2 => (any::<bool>(), prop::sample::select(vec![0u16, 100]), 14usize..3000).prop_map(|(control, vlan, len)| Event::Inject(control, vlan, len)), 1 => Just(Event::Read)];
    prop::collection::vec(event, 1..200)
}

proptest! {
    /// For any traffic, in frames and bytes: input equals output after every event, the depth is what waits, and a stop leaves
    /// nothing.
    #[test]
    fn nothing_is_lost_uncounted(events in events(), pool_frames in 4u64..200, linux in prop::option::of(1u32..100_000)) {
        let pool = PoolConfig { bytes: 100_000, frames: pool_frames, alpha_256: 256 };
        let rates = |rate| PuntRates { classes: [rate; PuntClass::COUNT], asks: rate, ..PLENTY };
        let (mut path, mut host) = match linux {
            None => (path(pool), None),
            Some(rate) => {
                let (path, host) = with_linux(pool, rates(rate));
                (path, Some(host))
            }
        };
        let (mut came, mut room) = (0, [0; 16 << 10]);
        let mut now = 0;
        let hosts = ["10.0.1.3", "10.0.2.2", "10.0.100.7", "10.0.3.1", "192.0.2.1", "2001:db8:2::9", "10.0.1.1", "2001:db8:1::1", "10.0.4.4"];
        for event in events {
            match event {
                Event::Frame { from, dst, opcode, tos, ttl, payload, tag, trailer, damage } => {
                    let dst = hosts[usize::from(dst)];
                    let craft = Craft { dst_mac: mac(from), tos, ttl, tags: tag.into_iter().collect(), ..data(dst) };
                    let craft = Craft { bth: craft.bth.map(|bth| BthFields { opcode, ..bth }), payload: vec![0; payload], ..craft };
                    let mut frame = craft.frame();
                    frame.resize(frame.len() + trailer, 0x5a);
                    if let Some((at, value)) = damage
                        && let Some(byte) = frame.get_mut(at)
                    {
                        *byte = value;
                    }
                    push(&mut path, PortId(from), &frame, now);
                }
                Event::Send(port, after) => {
                    now += after;
                    pull(&mut path, PortId(port), now);
                }
                Event::Originate => {
                    let _ = path.originate(DC, Priority::new(6), HeapFrame::new(&[0; 74]), Nanos(now));
                }
                Event::Arp(from, tagged) => {
                    let mut frame = [&[0xff; 12][..], if tagged { &[0x81, 0, 0, 100] } else { &[] }, &[8, 6]].concat();
                    frame.resize(64, 1);
                    push(&mut path, PortId(from), &frame, now);
                }
                Event::Inject(control, vlan, len) => {
                    path.inject(Place { port: DC, vlan }, control, HeapFrame::new(&vec![0; len]), Nanos(now));
                }
                Event::Read => for class in host.iter_mut().flat_map(|host| &mut host.classes) {
                    while class.pop(&mut room).is_some() {
                        came += 1;
                    }
                },
            }
            path.publish_held();
            assert_conserved(&path);
            prop_assert_eq!(path.buffer().used().frames, path.counters().held.packets.get());
            let depth: u64 = [DC, WAN].iter().flat_map(|port| Priority::all().map(|priority| path.depth(*port, priority))).sum();
            prop_assert_eq!(path.buffer().used().bytes, depth);
        }
        for class in host.iter_mut().flat_map(|host| &mut host.classes) {
            while class.pop(&mut room).is_some() {
                came += 1;
            }
        }
        let punted: u64 = path.counters().ports().map(|port| port.punted.packets.get()).sum();
        prop_assert_eq!(came, punted, "what is counted as punted, Linux can read");
        path.shut_down();
        assert_conserved(&path);
        prop_assert_eq!((path.buffer().used().frames, path.buffer().used().bytes, path.counters().held.packets.get()), (0, 0, 0));
    }
}
