//! Bulk flows over one bottleneck: what they reach together, and how they share it.

use base::Duration;
use inet::{Config, Offloads};
use sim::{Flows, Plan, Weather, World, for_each_seed};

/// Windows of both hosts over the longest path here.
const BUFFERS: usize = 16384;

/// 20 Mbit/s and 20 ms there and back, with a queue of 50 ms.
const PATH: Weather = Weather {
    delay: Duration::from_millis(10),
    bandwidth: 2_500_000,
    queue: 125_000,
    ..Weather::FAIR
};

fn world(seed: u64, weather: Weather) -> World {
    let offloads = Offloads {
        checksum: true,
        segment_v4: seed.is_multiple_of(2),
    };
    World::with_buffers(seed, weather, offloads, Config::default(), BUFFERS)
}

/// Percent of the link's bytes that were payload some reader got.
fn utilisation(received: &[u64], weather: Weather, time: Duration) -> u64 {
    let most = weather.bandwidth * time.as_millis() as u64 / 1000;
    received.iter().sum::<u64>() * 100 / most
}

#[test]
fn one_flow_fills_a_clean_path() {
    for_each_seed(4, |seed| {
        let mut world = world(seed, PATH);
        let mut flows = Flows::new(&mut world, &[Plan::default()]);
        flows.run(&mut world, Duration::from_secs(2));
        let time = Duration::from_secs(5);
        let received = flows.run(&mut world, time);
        let percent = utilisation(&received, PATH, time);
        assert!(percent >= 90, "{percent} %, {:?}", flows.info(&world, 0));
    });
}
