//! Buffers that grow with the path.

use base::Duration;
use inet::{Config, Offloads, Options, Shutdown};
use sim::{Flows, Plan, Side, Weather, World};

/// 100 Mbit/s and 100 ms there and back: 1.25 MB under way.
const LONG: Weather = Weather {
    delay: Duration::from_millis(50),
    bandwidth: 12_500_000,
    queue: 1_250_000,
    ..Weather::FAIR
};

fn world(config: Config) -> World {
    let offloads = Offloads {
        checksum: true,
        segment_v4: true,
        segment_v6: true,
    };
    World::with_buffers(1, LONG, offloads, config, 32768)
}

/// Percent of the link that one flow reaches in five seconds, after five to begin.
fn reached(world: &mut World, options: Options) -> u64 {
    let plan = Plan {
        options,
        ..Plan::default()
    };
    let mut flows = Flows::new(world, &[plan]);
    flows.run(world, Duration::from_secs(5));
    let received = flows.run(world, Duration::from_secs(5));
    received[0] * 100 / (LONG.bandwidth * 5)
}

#[test]
fn buffers_grow_until_a_long_path_is_full() {
    let mut world = world(Config::default());
    let percent = reached(&mut world, Options::default());
    assert!(percent >= 90, "{percent} %");
    for host in [&world.left, &world.right] {
        let grown = host.stack.buffers_grown();
        assert!((1 << 20..8 << 20).contains(&grown), "{grown} bytes");
    }
}

#[test]
fn a_buffer_whose_size_was_set_stays() {
    let mut world = world(Config::default());
    let options = Options {
        is_send_tuned: false,
        ..Options::default()
    };
    let percent = reached(&mut world, options);
    assert!(percent <= 25, "{percent} %");
    assert_eq!(world.left.stack.buffers_grown(), 0);
}

#[test]
fn all_buffers_together_grow_within_their_limit() {
    let config = Config {
        buffer_growth_max: 300_000,
        ..Config::default()
    };
    let mut world = world(config);
    let mut flows = Flows::new(&mut world, &[Plan::default(), Plan::default()]);
    flows.run(&mut world, Duration::from_secs(10));
    assert_eq!(world.left.stack.buffers_grown(), 300_000);
}

#[test]
fn what_a_connection_has_grown_by_is_given_back_when_it_ends() {
    let mut world = world(Config::default());
    let plan = Plan {
        bytes: Some(20_000_000),
        ..Plan::default()
    };
    let mut flows = Flows::new(&mut world, &[plan]);
    flows.run(&mut world, Duration::from_secs(10));
    assert_eq!(flows.received(), [20_000_000]);
    assert!(world.left.stack.buffers_grown() > 0);
    let [sender, receiver] = flows.sockets(0);
    for (side, socket) in [(Side::Left, sender), (Side::Right, receiver)] {
        let host = world.host(side);
        let how = Shutdown::Both;
        host.stack
            .shutdown(&mut host.env, socket, how)
            .expect("an open stream");
        host.stack.close(&mut host.env, socket).expect("our socket");
    }
    world.run_for(Duration::from_secs(2));
    for host in [&world.left, &world.right] {
        assert_eq!(host.stack.buffers_grown(), 0);
    }
}
