//! Boxes on the path rewrite options: bytes still arrive once, in order and complete.

use base::Duration;
use inet::Offloads;
use sim::{Flows, Middlebox, Plan, Transfer, Weather, World, for_each_seed};

const BOXES: [Middlebox; 10] = [
    Middlebox::Honest,
    Middlebox::NoSack,
    Middlebox::NoSackBlocks,
    Middlebox::NoTimestamps,
    Middlebox::NoLateTimestamps,
    Middlebox::NoScale,
    Middlebox::NoOptions,
    Middlebox::ClampMss(700),
    Middlebox::ClearEcn,
    Middlebox::RefuseEcn,
];

#[test]
fn bytes_arrive_in_order_through_every_box_on_a_lossy_path() {
    for_each_seed(3, |seed| {
        for middlebox in BOXES {
            let weather = Weather {
                loss: 3,
                reordering: 3,
                delay: Duration::from_millis(3),
                bandwidth: 12_500_000,
                middlebox,
                ..Weather::FAIR
            };
            let mut world = World::new(seed, weather, Offloads::default());
            let bytes = 50_000 + world.random.below(200_000) as usize;
            eprintln!("{middlebox:?}");
            Transfer::new(&mut world, bytes, bytes / 3).run(&mut world);
        }
    });
}

#[test]
fn what_a_box_takes_out_of_syns_is_used_by_nobody() {
    for (middlebox, expected) in [
        (Middlebox::Honest, (true, true, 1448, 7)),
        (Middlebox::NoSack, (false, true, 1448, 7)),
        (Middlebox::NoTimestamps, (true, false, 1460, 7)),
        (Middlebox::NoScale, (true, true, 1448, 0)),
        (Middlebox::NoOptions, (false, false, 536, 0)),
        (Middlebox::ClampMss(700), (true, true, 688, 7)),
    ] {
        let weather = Weather {
            middlebox,
            ..Weather::FAIR
        };
        let mut world = World::new(1, weather, Offloads::default());
        let mut flows = Flows::new(&mut world, &[Plan::default()]);
        flows.run(&mut world, Duration::from_millis(20));
        let info = flows.info(&world, 0).expect("a connection");
        let (scale, _) = info.window_scales;
        let found = (info.has_sack, info.has_timestamps, info.mss, scale);
        assert_eq!(found, expected, "{middlebox:?}");
    }
}
