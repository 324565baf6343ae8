//! The benchmark of "The Case of the Clumsy Kernel", second by second: once with that kernel
//! and once with ours. `docs/time-wait.md` explains what is seen.

use std::net::Ipv4Addr;

use base::Duration;
use inet::{Config, Offloads, ResetReason, TimeWaitRules};
use sim::{Closer, Crowd, Weather, World};

const CLIENTS: usize = 100;
const SECONDS: u32 = 10;
const INTERVAL: Duration = Duration::from_micros(200);

fn main() {
    let ours = TimeWaitRules::default();
    for (name, rules) in [("clumsy", TimeWaitRules::clumsy()), ("ours", ours)] {
        println!("{name}: connections  RetransSegs  OutRsts  Bad_seq  ListenDrop  TIME_WAIT");
        run(rules);
    }
}

fn run(time_wait: TimeWaitRules) {
    let config = Config {
        time_wait,
        time_waits_max: 1 << 16,
        ..Config::default()
    };
    let mut world = World::with_config(1, Weather::FAIR, Offloads::default(), config);
    let mut crowd = Crowd::new(&mut world, CLIENTS, Ipv4Addr::LOCALHOST, Closer::Server);
    let mut before = [0; 4];
    for second in 1..=SECONDS {
        let done: u64 = crowd.run(&mut world, 1, INTERVAL).iter().sum();
        let now = troubles(&world);
        let [resent, resets, bad, dropped] = core::array::from_fn(|at| now[at] - before[at]);
        before = now;
        let waits = world.left.stack.time_waits();
        println!(
            "{second:>6} {done:>12} {resent:>12} {resets:>8} {bad:>8} {dropped:>11} {waits:>10}"
        );
    }
}

/// Segments sent again, resets, those for a bad number, and SYNs that found a full queue.
fn troubles(world: &World) -> [u64; 4] {
    let stats = world.left.stack.stats();
    let named = stats.illumos_tcp();
    let value = |name| {
        let line = named.iter().find(|(other, _)| *other == name);
        line.map_or(0, |(_, value)| *value)
    };
    [
        value("tcpRetransSegs"),
        value("tcpOutRsts"),
        stats.resets.get(ResetReason::BadSeq),
        value("tcpListenDrop") + value("tcpListenDropQ0"),
    ]
}
