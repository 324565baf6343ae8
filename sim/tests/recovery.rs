//! Losses, and what looks like them: what is sent again, and when.

use base::Duration;
use inet::{Config, Count, Offloads};
use sim::{Flows, Plan, Side, Weather, World, for_each_seed};

/// 40 ms there and back at 80 Mbit/s, with room for more than a window.
const PATH: Weather = Weather {
    delay: Duration::from_millis(20),
    bandwidth: 10_000_000,
    queue: 20_000_000,
    ..Weather::FAIR
};

/// A flow of so many bytes, run for so long.
fn begin(seed: u64, bytes: Option<u64>, millis: u64) -> (World, Flows) {
    let mut world = World::with_buffers(seed, PATH, Offloads::default(), Config::default(), 16384);
    let plan = Plan {
        bytes,
        ..Plan::default()
    };
    let mut flows = Flows::new(&mut world, &[plan]);
    flows.run(&mut world, Duration::from_millis(millis));
    (world, flows)
}

fn count(world: &World, what: Count) -> u64 {
    world.left.stack.stats().counts.get(what)
}

/// Bytes of a full segment's frame, and of a bare acknowledgement's.
const FULL: u64 = 1514;
const BARE: u64 = 66;

/// Lets the left host send so many bytes more before the link dies.
fn cut_after(world: &mut World, bytes: u64) {
    let weather = Weather {
        carries: world.carried_from(Side::Left) + bytes,
        ..PATH
    };
    world.set_weather(Side::Left, weather);
}

#[test]
fn a_lost_tail_is_repaired_without_a_timeout() {
    // RFC 8985 section 7: of ten segments that leave at 80 ms the first six arrive.
    let (mut world, mut flows) = begin(1, Some(14_480), 75);
    cut_after(&mut world, BARE + 6 * FULL);
    flows.run(&mut world, Duration::from_millis(60));
    world.set_weather(Side::Left, PATH);
    flows.run(&mut world, Duration::from_millis(250));
    assert_eq!(flows.received(), [14_480]);
    assert_eq!(count(&world, Count::Timeouts), 0);
}

#[test]
fn a_probe_repairs_a_lost_last_segment_and_shrinks_the_window() {
    // RFC 8985 7.4: of ten segments the last is lost, and all that the peer says meanwhile.
    let (mut world, mut flows) = begin(1, Some(14_480), 75);
    cut_after(&mut world, BARE + 9 * FULL);
    flows.run(&mut world, Duration::from_millis(20));
    let silent = Weather { loss: 100, ..PATH };
    world.set_weather(Side::Right, silent);
    flows.run(&mut world, Duration::from_millis(100));
    world.set_weather(Side::Left, PATH);
    world.set_weather(Side::Right, PATH);
    let before = flows.info(&world, 0).expect("a connection");
    flows.run(&mut world, Duration::from_secs(1));
    let after = flows.info(&world, 0).expect("a connection");
    assert_eq!(flows.received(), [14_480]);
    assert_eq!(count(&world, Count::LossProbes), 1);
    assert_eq!(count(&world, Count::LossProbeRecoveries), 1);
    assert_eq!(count(&world, Count::Timeouts), 0);
    assert!(after.cwnd < before.cwnd, "{before:?} {after:?}");
}

#[test]
fn a_retransmission_lost_again_is_found_without_a_timeout() {
    // RFC 8985 section 3: time finds it, where counting duplicates could not.
    let weather = Weather { loss: 15, ..PATH };
    for_each_seed(5, |seed| {
        let (mut world, mut flows) = begin(seed, None, 400);
        world.set_weather(Side::Left, weather);
        flows.run(&mut world, Duration::from_secs(3));
        assert!(count(&world, Count::RetransmitsLost) > 0);
        let (lost, timeouts) = (
            count(&world, Count::RetransmitsLost),
            count(&world, Count::Timeouts),
        );
        assert!(timeouts < lost, "{timeouts} timeouts, {lost} lost again");
    });
}

#[test]
fn a_path_that_reorders_is_learnt_and_then_costs_little() {
    // RFC 8985 6.2 step 4: the window widens with what was sent again in vain.
    let weather = Weather {
        reordering: 5,
        delay: Duration::from_millis(4),
        ..PATH
    };
    for_each_seed(3, |seed| {
        let (mut world, mut flows) = begin(seed, None, 400);
        world.set_weather(Side::Left, weather);
        flows.run(&mut world, Duration::from_secs(2));
        let early = count(&world, Count::Retransmits);
        flows.run(&mut world, Duration::from_secs(2));
        let late = count(&world, Count::Retransmits) - early;
        let segments = count(&world, Count::SegmentsOut);
        assert!(count(&world, Count::ReorderingsSeen) > 0);
        assert!(late * 50 < segments, "{late} again of {segments}");
        assert_eq!(count(&world, Count::Timeouts), 0);
    });
}

#[test]
fn a_delay_that_looks_like_loss_is_undone() {
    // RFC 3522 and RFC 4015: a frame holds up the link for three quarters of a second; nothing is
    // lost.
    let (mut world, mut flows) = begin(1, None, 600);
    let before = flows.info(&world, 0).expect("a connection");
    let still = Weather {
        bandwidth: 2000,
        ..PATH
    };
    world.set_weather(Side::Left, still);
    let carried = world.carried_from(Side::Left);
    while world.carried_from(Side::Left) == carried {
        flows.run(&mut world, Duration::from_micros(50));
    }
    world.set_weather(Side::Left, PATH);
    flows.run(&mut world, Duration::from_secs(2));
    let undone = count(&world, Count::SpuriousTimeouts)
        + count(&world, Count::FullUndos)
        + count(&world, Count::DuplicateSackUndos);
    assert!(undone > 0);
    let after = flows.info(&world, 0).expect("a connection");
    assert!(after.cwnd >= before.cwnd, "{before:?} {after:?}");
}
