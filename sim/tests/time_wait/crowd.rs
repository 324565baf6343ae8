//! The benchmark of "The Case of the Clumsy Kernel": one client address, one server
//! address, a connection for each request, and few ports, so that the range is used up
//! again and again while finished connections are remembered for a minute.

use std::net::Ipv4Addr;

use base::Duration;
use inet::{Config, Count, DropReason, Offloads, PortRange, ResetReason, TimeWaitRules};
use sim::{Closer, Crowd, Host, Weather, World};

const CLIENTS: usize = 20;
const SECONDS: u32 = 30;
const PER_SECOND: u64 = 500;
const INTERVAL: Duration = Duration::from_millis(2);
/// Ports of the client: used up every two seconds, 15 times in all.
const PORTS: u16 = 1000;

fn config(time_wait: TimeWaitRules) -> Config {
    Config {
        time_waits_max: 1 << 16,
        ports: PortRange::new(40_000, 40_000 + PORTS - 1).expect("some ports"),
        time_wait,
        ..Config::default()
    }
}

/// Two hosts, whose rules may differ.
fn world(left: TimeWaitRules, right: TimeWaitRules) -> World {
    let offloads = Offloads::default();
    let mut world = World::with_config(3, Weather::FAIR, offloads, config(right));
    world.left = Host::new(1, 3, offloads, config(left), 2048);
    world
}

fn count(host: &Host, what: Count) -> u64 {
    host.stack.stats().counts.get(what)
}

/// Asserts that each second but the first and the last was like the others.
fn assert_steady(rates: &[u64]) {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    assert!(median > PER_SECOND * 95 / 100, "{rates:?}");
    for rate in &rates[1..] {
        assert!(rate.abs_diff(median) * 100 <= median * 15, "{rates:?}");
    }
}

fn assert_clean(world: &World, crowd: &Crowd) {
    assert_eq!(crowd.failures, 0);
    for host in [&world.left, &world.right] {
        assert_eq!(count(host, Count::Retransmits), 0);
        assert_eq!(count(host, Count::ResetsOut), 0);
    }
}

#[test]
fn a_server_that_remembers_every_port_of_a_client_serves_it_at_the_same_rate() {
    let rules = TimeWaitRules::default();
    let mut world = world(rules, rules);
    let mut crowd = Crowd::new(&mut world, CLIENTS, Host::address(2), Closer::Server);
    let rates = crowd.run(&mut world, SECONDS, INTERVAL);
    assert_steady(&rates);
    assert_clean(&world, &crowd);
    assert!(world.right.stack.time_waits() > usize::from(PORTS) * 9 / 10);
    let reused = count(&world.right, Count::TimeWaitsReused);
    assert!(reused > 13 * u64::from(PORTS), "{reused}");
}

#[test]
fn a_client_that_remembers_every_port_of_its_own_goes_on_at_the_same_rate() {
    let rules = TimeWaitRules::default();
    let mut world = world(rules, rules);
    let mut crowd = Crowd::new(&mut world, CLIENTS, Host::address(2), Closer::Client);
    let rates = crowd.run(&mut world, SECONDS, INTERVAL);
    assert_steady(&rates);
    assert_clean(&world, &crowd);
    let recycled = count(&world.left, Count::TimeWaitsRecycled);
    assert!(recycled > 13 * u64::from(PORTS), "{recycled}");
}

#[test]
fn without_reuse_a_client_is_out_of_ports_and_told_so() {
    let rules = TimeWaitRules {
        reuse: inet::Reuse::Never,
        ..TimeWaitRules::default()
    };
    let mut world = world(rules, rules);
    let mut crowd = Crowd::new(&mut world, CLIENTS, Host::address(2), Closer::Client);
    let rates = crowd.run(&mut world, 5, INTERVAL);
    assert_eq!(rates.iter().sum::<u64>(), u64::from(PORTS), "{rates:?}");
    assert!(crowd.failures > PER_SECOND);
}

#[test]
fn on_one_host_nothing_is_remembered_by_whatever_name_it_is_called() {
    for address in [Ipv4Addr::LOCALHOST, Host::address(1)] {
        for closer in [Closer::Server, Closer::Client] {
            let rules = TimeWaitRules::default();
            let mut world = world(rules, rules);
            let mut crowd = Crowd::new(&mut world, CLIENTS, address, closer);
            let rates = crowd.run(&mut world, 10, INTERVAL);
            assert_steady(&rates);
            assert_clean(&world, &crowd);
            assert_eq!(world.left.stack.time_waits(), 0);
            let skipped = count(&world.left, Count::TimeWaitsSkipped);
            assert!(skipped >= 9 * PER_SECOND, "{skipped}");
        }
    }
}

#[test]
fn a_clumsy_kernel_stalls_and_its_counters_name_the_reason() {
    let clumsy = TimeWaitRules::clumsy();
    let mut world = world(clumsy, clumsy);
    let mut crowd = Crowd::new(&mut world, CLIENTS, Ipv4Addr::LOCALHOST, Closer::Server);
    let rates = crowd.run(&mut world, SECONDS, INTERVAL);
    assert!(rates[0] > PER_SECOND * 95 / 100, "fast at first: {rates:?}");
    let slow = &rates[10..];
    assert!(slow.iter().all(|rate| *rate < PER_SECOND / 4), "{rates:?}");
    let stats = world.left.stack.stats();
    let illumos: std::collections::HashMap<_, _> = stats.illumos_tcp().into_iter().collect();
    // A ceiling of one retransmission a second and client, and as many resets.
    let (resent, resets) = (illumos["tcpRetransSegs"], illumos["tcpOutRsts"]);
    assert!(resent > u64::from(SECONDS), "{resent}");
    assert!(resent <= u64::from(SECONDS) * CLIENTS as u64, "{resent}");
    assert!(
        resets.abs_diff(resent) <= CLIENTS as u64,
        "{resets} {resent}"
    );
    // It is no full queue: the resets say which state did not like which number.
    assert_eq!(
        (illumos["tcpListenDrop"], illumos["tcpListenDropQ0"]),
        (0, 0)
    );
    assert_eq!(stats.resets.get(ResetReason::BadSeq), resets);
    assert_eq!(ResetReason::BadSeq.name(), "TCPS_SYN_SENT-Bad_seq");
    assert_eq!(stats.drops.get(DropReason::TimeWaitSyn), resets);
    assert_eq!(count(&world.left, Count::TimeWaitsReset), resets);
}

#[test]
fn a_clumsy_client_of_a_careful_server_does_not_stall() {
    let mut world = world(TimeWaitRules::clumsy(), TimeWaitRules::default());
    let mut crowd = Crowd::new(&mut world, CLIENTS, Host::address(2), Closer::Server);
    let rates = crowd.run(&mut world, SECONDS, INTERVAL);
    assert_steady(&rates);
    assert_eq!(count(&world.left, Count::Retransmits), 0);
    // Half of its random numbers lie before the old ones; its reset tells that it means it.
    let taken_up = count(&world.right, Count::TimeWaitsTakenUp);
    assert!(taken_up > 5 * u64::from(PORTS), "{taken_up}");
    let resets = world.left.stack.stats().resets.get(ResetReason::BadSeq);
    assert_eq!(taken_up, resets);
}
