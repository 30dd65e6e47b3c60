//! Pace of a port whose speed a reload changes, by the world's clock (docs/changes.md).

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World, laws, seeds};

/// Time over which a pace is measured.
const TIME: u64 = 4 * MS;
/// Payload and wire length of a frame.
const LEN: usize = 1_024;
const WIRE: u64 = 14 + 20 + 8 + 12 + 16 + LEN as u64 + 4 + 4 + 20;

fn text(far: &'static str) -> String {
    let switch = Switch {
        far,
        npcc: "action: observe, ",
        ..Switch::default()
    };
    switch.text()
}

/// Bit/s that port 2 sends, while more is waiting than it can send.
fn pace(world: &mut World) -> f64 {
    // What the card has taken leaves.
    world.run_to(world.now + MS);
    let before = world.flows[0].received;
    world.run_to(world.now + TIME);
    laws::always(world);
    let bits = u64::from(world.flows[0].received - before) * WIRE * 8;
    bits as f64 * 1e9 / TIME as f64
}

#[test]
fn a_ports_speed_is_that_of_the_last_reload_and_outlasts_a_flap() {
    for seed in seeds::first(8) {
        let mut world = World::new(&text(", speed: 2G"), seed);
        world.connect(Traffic {
            from: (seed % 2) as usize,
            to: 2,
            len: LEN,
            until: u64::MAX,
            answers: false,
            ..Traffic::default()
        });
        let mut paces = vec![(2e9, pace(&mut world))];
        world.reload(&text(", speed: 500M")).unwrap();
        paces.push((5e8, pace(&mut world)));
        world.set_link(2, false);
        let up = world.now + world.chance(500 * US);
        world.run_to(up);
        world.set_link(2, true);
        paces.push((5e8, pace(&mut world)));
        world.reload(&text(", speed: 2G")).unwrap();
        paces.push((2e9, pace(&mut world)));
        println!("seed {seed}: {paces:?}");
        for (speed, is) in &paces {
            let share = is / speed;
            assert!(
                (0.97..=1.01).contains(&share),
                "{paces:?}\n{}",
                world.replay()
            );
        }
    }
}
