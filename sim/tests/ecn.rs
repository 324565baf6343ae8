//! Routers that mark instead of losing.

use base::Duration;
use inet::{Algorithm, Config, Count, Ecn, Offloads, Options};
use sim::{Flows, Middlebox, Plan, Weather, World};

/// 20 Mbit/s, 20 ms there and back, marks above 20 ms of queue.
const PATH: Weather = Weather {
    delay: Duration::from_millis(10),
    bandwidth: 2_500_000,
    queue: 250_000,
    mark_above: 50_000,
    ..Weather::FAIR
};

fn run(algorithm: Algorithm, weather: Weather, ecn: Ecn) -> (World, u64) {
    let config = Config {
        ecn,
        ..Config::default()
    };
    let offloads = Offloads {
        checksum: true,
        segment_v4: true,
        segment_v6: true,
    };
    let mut world = World::with_buffers(1, weather, offloads, config, 16384);
    let options = Options {
        congestion: algorithm,
        ..Options::default()
    };
    let plan = Plan {
        options,
        ..Plan::default()
    };
    let mut flows = Flows::new(&mut world, &[plan]);
    flows.run(&mut world, Duration::from_secs(5));
    let received = flows.run(&mut world, Duration::from_secs(10));
    let percent = received[0] * 100 / (weather.bandwidth * 10);
    (world, percent)
}

fn marks(world: &World) -> u64 {
    world.right.stack.stats().counts.get(Count::MarksIn)
}

fn left(world: &World, what: Count) -> u64 {
    world.left.stack.stats().counts.get(what)
}

#[test]
fn a_marked_flow_fills_the_path_and_loses_nothing() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let (world, percent) = run(algorithm, PATH, Ecn::Ask);
        assert!(percent >= 90, "{algorithm:?}: {percent} %");
        assert!(marks(&world) > 0);
        assert!(left(&world, Count::MarkReductions) > 0);
        assert_eq!(left(&world, Count::Retransmits), 0);
    }
}

#[test]
fn a_window_shrinks_once_a_round_trip_however_many_marks_arrive() {
    // RFC 3168 6.1.2.
    let (world, _) = run(Algorithm::Reno, PATH, Ecn::Ask);
    let reductions = left(&world, Count::MarkReductions);
    assert!(reductions * 2 < marks(&world), "{reductions} reductions");
    assert!(reductions < 15_000 / 20, "{reductions} in 15 s");
}

#[test]
fn nobody_is_marked_who_was_not_asked() {
    let (world, _) = run(Algorithm::Cubic, PATH, Ecn::Accept);
    assert_eq!(marks(&world), 0);
}

#[test]
fn boxes_that_dislike_marks_do_not_stop_a_flow() {
    // RFC 3168 6.1.1.1: the SYN is repeated without asking.
    for middlebox in [Middlebox::RefuseEcn, Middlebox::ClearEcn] {
        let weather = Weather { middlebox, ..PATH };
        let (world, percent) = run(Algorithm::Cubic, weather, Ecn::Ask);
        assert_eq!(marks(&world), 0);
        assert!(percent >= 80, "{middlebox:?}: {percent} %");
    }
}
