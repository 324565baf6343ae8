//! The property `cpus`: who takes a link's frames, while they come.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::link_counts::{CARDS, kstat, kstats};
use crate::links::{expect, host_pings, operator_at};
use crate::operator::Operator;
use crate::rings::{REDIS, counter, ping_redis};

/// The test.
pub const TESTS: &[Test] = &[(
    "a card and a VNIC are bound to CPUs while frames come, and nothing is lost (link layer)",
    bound,
)];

const PORT: u16 = 6379;
/// Connections that are asked all the time.
const CLIENTS: usize = 8;
/// So many frames come at least while it is looked who takes them.
const FRAMES_MIN: u64 = 100;
const PINGS: u32 = 20;
/// The server gets time on a CPU that is as busy as can be.
const PATIENCE: Duration = Duration::from_secs(60);
/// Counters that rise with what is lost on the way to a stack.
const LOSSES: [&str; 4] = [
    "eth0:0:mac_rx_ring_0_*:hdrops",
    "eth0:0:/^mac_rx_hwlane[0-9]+$/:rxsdrops",
    "*:0:mac_misc_stat:overflowed",
    "link:0:eth0:norcvbuf",
];

fn bound(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    for card in CARDS {
        if card != "virtio" && !setup.has_our_pci() {
            continue;
        }
        let setup = setup.with_nic(card).with_cpus("2");
        bound_behind(&setup).map_err(|why| format!("{card}: {why}"))?;
    }
    Ok(())
}

fn bound_behind(setup: &Setup) -> Result<(), String> {
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let (mut shell, address) = operator_at(setup, PORT, &["--add", &kstat, "--add", REDIS])?;
    shell.ask(&format!(
        "redis-server --port {PORT} --protected-mode no --save '' >/dev/null &"
    ))?;
    shell.guest.expect_answer(address, b"PING\r\n")?;
    refused(&mut shell)?;
    let rings = if setup.has_rings() { 2 } else { 1 };
    under_load(address, |answered| moves(&mut shell, rings, answered))?;
    vnic(&mut shell)?;
    // `rxsdrops` of soft rings is there only where there are several.
    if rings > 1 && kstat_sum(&mut shell, &["eth0:0:mac_rx_fanout*:rxsdrops"])? != 0 {
        return Err("soft rings dropped frames".into());
    }
    let lost = kstat_sum(&mut shell, &LOSSES)?;
    let disordered = counter(&mut shell, "TCPOFOQueue")?;
    if (lost, disordered) != (0, 0) {
        return Err(format!("{lost} lost, {disordered} out of order"));
    }
    shell.leave().map(drop)
}

fn kstat_sum(shell: &mut Operator, patterns: &[&str]) -> Result<u64, String> {
    patterns
        .iter()
        .try_fold(0, |sum, pattern| Ok(sum + kstat(shell, pattern)?))
}

/// In a sentence each, and nothing changes.
fn refused(shell: &mut Operator) -> Result<(), String> {
    expect(
        shell,
        &[
            (
                "dladm set-linkprop -t -p cpus=0-2 eth0",
                &["eth0 is not changed: cpus: the machine's CPUs are 0 to 1"],
            ),
            (
                "dladm set-linkprop -t -p cpus= eth0",
                &["eth0 is not changed: cpus: no CPU is named"],
            ),
            (
                "echo value $(dladm show-linkprop -c -o value -p cpus eth0)",
                &["value --"],
            ),
        ],
    )
}

/// Calls `act` while one server is asked by several connections, each of which gets every answer.
fn under_load(
    address: SocketAddr,
    act: impl FnOnce(&AtomicU64) -> Result<(), String>,
) -> Result<(), String> {
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let client = || ping_redis(address, &is_over, &answered, Duration::ZERO);
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let done = act(&answered);
        is_over.store(true, Ordering::Relaxed);
        let mut results = clients.into_iter().map(|client| match client.join() {
            Ok(result) => result.map_err(|error| format!("a connection: {error}")),
            Err(_) => Err("a client panicked".into()),
        });
        done.and_then(|()| results.try_for_each(|result| result))
    })
}

fn moves(shell: &mut Operator, rings: usize, answered: &AtomicU64) -> Result<(), String> {
    for cpu in [1, 0, 1] {
        bind(shell, "eth0", cpu)?;
        shows(shell, &vec![cpu.to_string(); rings].join(","))?;
        takes(shell, "eth0", cpu, FRAMES_MIN, || wait_for(answered))?;
    }
    // One after the other, so that a move meets what the one before left behind.
    let flip = "for k in $(seq 40); do dladm set-linkprop -t -p cpus=$((k % 2)) eth0; done";
    shell.ask_within(flip, PATIENCE)?;
    wait_for(answered)?;
    bind(shell, "eth0", 1)?;
    shell.ask("dladm reset-linkprop -t -p cpus eth0")?;
    if rings == 1 {
        shows(shell, "any")?;
    }
    wait_for(answered)
}

/// Until so many more requests are answered that as many frames came.
fn wait_for(answered: &AtomicU64) -> Result<(), String> {
    let before = answered.load(Ordering::Relaxed);
    let step = Duration::from_millis(50);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        if answered.load(Ordering::Relaxed) > before + 2 * FRAMES_MIN {
            return Ok(());
        }
        thread::sleep(step);
    }
    Err("nobody is answered".into())
}

fn bind(shell: &mut Operator, link: &str, cpu: usize) -> Result<(), String> {
    let line = format!("dladm set-linkprop -t -p cpus={cpu} {link}");
    shell.ask(&line).map(drop)
}

fn shows(shell: &mut Operator, cpus: &str) -> Result<(), String> {
    let said = shell.ask("dladm show-phys -H -p -o ringtype,cpus eth0")?;
    let row = format!("RX:{cpus}");
    match said.lines().any(|line| line.trim() == row) {
        true => Ok(()),
        false => Err(format!("no `{row}` in {said}")),
    }
}

/// Of all frames of a link that come during `act` one CPU takes every one.
fn takes(
    shell: &mut Operator,
    link: &str,
    cpu: usize,
    least: u64,
    act: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let before = taken(shell, link)?;
    act()?;
    let after = taken(shell, link)?;
    let more: Vec<u64> = after
        .iter()
        .zip(before)
        .map(|(now, was)| now - was)
        .collect();
    match more[cpu] >= least && more[1 - cpu] == 0 {
        true => Ok(()),
        false => Err(format!("CPU {cpu} has {link}, and the CPUs took {more:?}")),
    }
}

/// Of each CPU.
fn taken(shell: &mut Operator, link: &str) -> Result<Vec<u64>, String> {
    let all = kstats(shell, &format!("{link}:0:mac_rx_cpu*:ipackets"))?;
    match all.len() {
        2 => Ok(all.into_values().collect()),
        _ => Err(format!("not of two CPUs: {all:?}")),
    }
}

/// The card's CPU takes them from its rings, and the VNIC's takes them through its stack.
fn vnic(shell: &mut Operator) -> Result<(), String> {
    shell.ask(
        "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:51 -p cpus=1 vnic51; \
         ip addr add 10.0.2.51/24 dev vnic51",
    )?;
    for (card, cpu) in [(0, 1), (1, 0), (1, 1)] {
        bind(shell, "eth0", card)?;
        bind(shell, "vnic51", cpu)?;
        takes(shell, "vnic51", cpu, PINGS.into(), || {
            match host_pings("10.0.2.51", PINGS)? {
                true => Ok(()),
                false => Err("vnic51 does not answer".into()),
            }
        })?;
    }
    Ok(())
}
