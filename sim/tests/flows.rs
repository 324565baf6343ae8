//! Bulk flows over one bottleneck: what they reach together, and how they share it.

use base::Duration;
use inet::{Algorithm, Config, Offloads, Options};
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
        segment_v6: seed.is_multiple_of(2),
    };
    World::with_buffers(seed, weather, offloads, Config::default(), BUFFERS)
}

/// Percent of the link's bytes that were payload some reader got.
fn utilisation(received: &[u64], weather: Weather, time: Duration) -> u64 {
    let most = weather.bandwidth * time.as_millis() / 1000;
    received.iter().sum::<u64>() * 100 / most
}

fn plan(algorithm: Algorithm) -> Plan {
    Plan {
        options: Options {
            congestion: algorithm,
            ..Options::default()
        },
        ..Plan::default()
    }
}

/// What one flow reaches in `time`, after two seconds to begin, in percent of the link.
fn reached(seed: u64, algorithm: Algorithm, weather: Weather, time: Duration) -> u64 {
    let mut world = world(seed, weather);
    let mut flows = Flows::new(&mut world, &[plan(algorithm)]);
    flows.run(&mut world, Duration::from_secs(2));
    let received = flows.run(&mut world, time);
    let percent = utilisation(&received, weather, time);
    eprintln!("{algorithm:?}: {percent} %, {:?}", flows.info(&world, 0));
    percent
}

#[test]
fn one_flow_fills_a_clean_path() {
    for algorithm in Algorithm::ALL {
        for_each_seed(4, |seed| {
            assert!(reached(seed, algorithm, PATH, Duration::from_secs(5)) >= 90);
        });
    }
}

#[test]
fn a_paced_flow_fills_a_path_that_loses_one_percent() {
    let weather = Weather { loss: 1, ..PATH };
    for_each_seed(6, |seed| {
        assert!(reached(seed, Algorithm::Bbr, weather, Duration::from_secs(10)) >= 90);
    });
}

#[test]
fn two_flows_share_a_bottleneck_within_a_fifth() {
    for algorithm in Algorithm::ALL {
        for_each_seed(3, |seed| {
            // Without chance, flows that lose in step never meet.
            let weather = Weather {
                jitter: Duration::from_micros(500),
                ..PATH
            };
            let mut world = world(seed, weather);
            let late = Plan {
                start: Duration::from_millis(500 + world.random.below(2000)),
                ..plan(algorithm)
            };
            let mut flows = Flows::new(&mut world, &[plan(algorithm), late]);
            flows.run(&mut world, Duration::from_secs(15));
            let time = Duration::from_secs(60);
            let received = flows.run(&mut world, time);
            eprintln!("{algorithm:?}: {received:?}");
            let (least, most) = (received[0].min(received[1]), received[0].max(received[1]));
            assert!(least * 5 >= most * 4, "{algorithm:?}: {received:?}");
            assert!(utilisation(&received, PATH, time) >= 90);
        });
    }
}

#[test]
fn every_algorithm_gets_through_when_a_fifth_is_lost() {
    let storm = Weather {
        loss: 20,
        duplication: 5,
        reordering: 15,
        corruption: 3,
        ..PATH
    };
    const BYTES: u64 = 100_000;
    for algorithm in Algorithm::ALL {
        for_each_seed(20, |seed| {
            let mut world = world(seed, storm);
            let some = Plan {
                bytes: Some(BYTES),
                ..plan(algorithm)
            };
            let mut flows = Flows::new(&mut world, &[some, some]);
            let mut minutes = 0;
            while flows.received() != [BYTES, BYTES] {
                flows.run(&mut world, Duration::from_secs(60));
                minutes += 1;
                let received = flows.received();
                assert!(minutes < 10, "{algorithm:?}: {received:?} in {minutes} min");
            }
        });
    }
}
