//! Bytes arrive once, in order and complete, whatever the link does to frames.
//!
//! `SIM_TRANSFERS` sets how many transfers a test makes, `SEED` replays one.

use base::Duration;
use inet::Offloads;
use sim::{Outcome, Transfer, Weather, World, for_each_seed};

const STORM: Weather = Weather {
    loss: 20,
    duplication: 5,
    reordering: 15,
    corruption: 3,
    delay: Duration::from_millis(2),
    bandwidth: 12_500_000,
    queue: 150_000,
    ..Weather::FAIR
};

fn transfers(default: u64) -> u64 {
    std::env::var("SIM_TRANSFERS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn offloads(seed: u64) -> Offloads {
    Offloads {
        checksum: !seed.is_multiple_of(3),
        segment_v4: seed % 3 > 1,
        segment_v6: seed % 3 > 1,
    }
}

fn transfer(seed: u64, weather: Weather, bytes_max: u64) -> Outcome {
    let mut world = World::new(seed, weather, offloads(seed));
    let left = world.random.below(bytes_max) as usize;
    let right = world.random.below(bytes_max) as usize;
    let outcome = Transfer::new(&mut world, left, right).run(&mut world);
    world.run_for(Duration::from_secs(200));
    for host in [&world.left, &world.right] {
        assert_eq!(host.env.pool.used(), 0, "buffers are left");
        assert_eq!(host.stack.time_waits(), 0, "a TIME_WAIT never ends");
    }
    outcome
}

#[test]
fn bytes_arrive_in_order_on_a_fair_link() {
    for_each_seed(transfers(60), |seed| {
        transfer(seed, Weather::FAIR, 2_000_000);
    });
}

#[test]
fn bytes_arrive_in_order_when_a_fifth_is_lost() {
    for_each_seed(transfers(300), |seed| {
        transfer(seed, STORM, 100_000);
    });
}

#[test]
fn reordering_alone_costs_no_timeout() {
    let weather = Weather {
        reordering: 10,
        delay: Duration::from_millis(1),
        ..Weather::FAIR
    };
    for_each_seed(transfers(30), |seed| {
        transfer(seed, weather, 500_000);
    });
}
