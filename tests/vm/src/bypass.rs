//! Programs that were written for sockets, on a network of their own by `libsietch.so` (`docs/bypass.md`).

use std::net::{Ipv4Addr, SocketAddr};

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::links::{number, operator_with};
use crate::operator::Operator;
use crate::redis::benchmark;
use crate::resp::Redis;

/// The tests.
pub const TESTS: &[Test] = &[(
    "Redis by libsietch.so serves a mixed load, and sleeps while there is none",
    serves_redis,
)];

const PROGRAM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const REDIS: u16 = 6379;

/// A machine with a VNIC for `program`, and the library.
fn operator(setup: &Setup, programs: &[&str]) -> Result<Operator, String> {
    let library = build::library("sietch")?;
    let library = format!("{}:/lib/libsietch.so", library.display());
    let mut flags = vec!["--add", &library];
    flags.extend(programs.iter().flat_map(|program| ["--add", program]));
    let mut shell = operator_with(setup, &flags)?;
    shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61")?;
    Ok(shell)
}

/// Starts a program on the link, in the background, and waits until it says a word.
fn start(shell: &mut Operator, program: &str, word: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "rm -f /tmp/said; \
         LD_PRELOAD=/lib/libsietch.so SIETCH_LINK=vnic61 SIETCH_ADDRESS={PROGRAM}/24 \
         {program} >/tmp/said 2>&1 & \
         until grep -q '{word}' /tmp/said || ! kill -0 $!; do sleep 0.1; done; cat /tmp/said"
    ))?;
    match said.contains(word) && !said.contains("libsietch:") {
        true => Ok(()),
        false => Err(format!("the program does not start: {said}")),
    }
}

fn start_redis(shell: &mut Operator, flags: &str) -> Result<SocketAddr, String> {
    let program = format!("redis-server --protected-mode no {flags}");
    start(shell, &program, "Ready to accept connections")?;
    Ok((PROGRAM, REDIS).into())
}

fn serves_redis(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/redis-server"])?;
    let address = start_redis(&mut shell, "--save ''")?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["SET", "key", "value"])?;
    if redis.call(&["GET", "key"])? != "value" {
        return Err("a value is lost".into());
    }
    benchmark(&shell.guest, address, &["-n", "2000", "-c", "50"])?;
    sleeps(&mut shell)?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// Its CPU time, in hundredths of a second.
const TICKS: &str = "awk '{print $14 + $15}' /proc/$!/stat";
/// Redis has a timer of ten times a second.
const TICKS_MAX: u64 = 25;

/// It does not poll on and on.
fn sleeps(shell: &mut Operator) -> Result<(), String> {
    let ticks = number(shell, TICKS)?;
    shell.ask("sleep 5")?;
    let ticks = number(shell, TICKS)? - ticks;
    match ticks <= TICKS_MAX {
        true => Ok(()),
        false => Err(format!("while nothing came it used {ticks}0 ms of a CPU")),
    }
}
