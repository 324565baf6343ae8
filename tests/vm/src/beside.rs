//! Sockets over a VNIC beside the card, in the same network stack: what each hears and by which
//! interface it answers. Their peers are VNICs in network stacks of their own.

use std::path::Path;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::links::{expect, operator_with};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a Redis on a VNIC's address and one on the card's share port 6379 in one stack",
        two_redis,
    ),
    (
        "TCP, UDP, IP_PKTINFO, SO_BINDTODEVICE and groups work over a VNIC beside the card",
        sockets,
    ),
    (
        "a UDP server with IP_PKTINFO answers by the card and by a VNIC that came later",
        answers,
    ),
    (
        "IPv6 of a VNIC beside the card is reached, and reaches out, link-local addresses too",
        ipv6,
    ),
    (
        "a VNIC that goes and comes again finds the servers that wait without an address",
        comes_again,
    ),
    (
        "an address that moves to another interface, or comes again in another shard, is heard",
        moves,
    ),
    (
        "a connected datagram socket goes on when its address comes again by another interface",
        connected_goes_on,
    ),
    (
        "a raw socket overhears datagrams of a VNIC that came later",
        overhears,
    ),
];

const PROGRAM: &str = "tests/programs/scenes/beside_the_card.c";
const PROGRAMS: [&str; 5] = [
    "unshare",
    "nsenter",
    "redis-server",
    "redis-cli",
    "redis-benchmark",
];
const IP: &str = "/usr/sbin/ip";
/// A VNIC of this machine, beside the card's 10.0.2.15.
const VNIC: &str = "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:51 vnic51; \
                    ip addr add 192.168.7.1/24 dev vnic51";
const REDIS: &str = "redis-server --protected-mode no --save '' --appendonly no";

/// A shell in a machine with the tools, and two peers: `on_vnic` is 192.168.7.2, `on_card` is
/// 10.0.2.53.
fn scene(setup: &Setup) -> Result<Operator, String> {
    let program = build::c(Path::new(PROGRAM))?;
    let program = format!("{}:/bin/beside", program.display());
    let paths = PROGRAMS.map(|program| format!("/usr/bin/{program}"));
    let mut added = vec!["--add", &program];
    added.extend(paths.iter().flat_map(|path| ["--add", path]));
    let mut shell = operator_with(setup, &added)?;
    for (name, number, address) in [
        ("on_vnic", 52, "192.168.7.2/24"),
        ("on_card", 53, "10.0.2.53/24"),
    ] {
        shell.ask(&format!(
            "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:{number} vnic{number}; \
             unshare -n sleep 1000 & {name}=$!; \
             {name}() {{ nsenter -t ${name} -n \"$@\"; }}; \
             until [ \"$(readlink /proc/${name}/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.1; done; \
             ip link set dev vnic{number} netns ${name}; \
             {name} {IP} addr add {address} dev vnic{number}"
        ))?;
    }
    Ok(shell)
}

fn two_redis(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    let server = |name: &str, address: &str| {
        format!(
            "{REDIS} --bind {address} >/dev/null & \
             until redis-cli -h {address} set stack {name} >/dev/null; do sleep 0.2; done"
        )
    };
    expect(
        &mut shell,
        &[
            (VNIC, &[]),
            (&server("vnic", "192.168.7.1"), &[]),
            (&server("card", "10.0.2.15"), &[]),
            ("redis-cli -h 192.168.7.1 get stack", &["vnic"]),
            ("redis-cli -h 10.0.2.15 get stack", &["card"]),
            ("on_vnic redis-cli -h 192.168.7.1 get stack", &["vnic"]),
            ("on_card redis-cli -h 10.0.2.15 get stack", &["card"]),
            (
                "b='redis-benchmark -n 2000 -c 20 -t set,get --csv'; on_vnic $b -h 192.168.7.1 & \
                 on_card $b -h 10.0.2.15; wait $!; echo both",
                &["SET", "GET", "both"],
            ),
            (
                "cat /proc/net/tcp",
                &[
                    "0107A8C0:18EB 00000000:0000 0A",
                    "0F02000A:18EB 00000000:0000 0A",
                ],
            ),
        ],
    )?;
    shell.leave().map(drop)
}

fn sockets(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    shell.ask(VNIC)?;
    shell.ask(
        "on_vnic beside echo >/tmp/echo & until grep -q ready /tmp/echo; do sleep 0.1; done",
    )?;
    let said = shell.ask("beside vnic51 192.168.7.1 192.168.7.2; echo over $?")?;
    match said.contains("over 0") && !said.contains("not ok") {
        true => shell.leave().map(drop),
        false => Err(said),
    }
}

/// The server begins when there is the card only.
fn answers(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    expect(
        &mut shell,
        &[
            (
                "beside which >/tmp/which & until grep -q ready /tmp/which; do sleep 0.1; done",
                &[],
            ),
            ("on_card beside ask 10.0.2.53 10.0.2.15", &["by eth0"]),
            (VNIC, &[]),
            ("on_vnic beside ask 192.168.7.2 192.168.7.1", &["by vnic51"]),
            ("on_card beside ask 10.0.2.53 10.0.2.15", &["by eth0"]),
        ],
    )?;
    shell.leave().map(drop)
}

fn ipv6(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    let asked = |from: &str, address: &str| {
        format!(
            "until {from} redis-cli -h {address} get key >/dev/null 2>&1; do sleep 0.2; done; \
             {from} redis-cli -h {address} get key"
        )
    };
    let server = |place: &str, value: &str| {
        format!(
            "{place} {REDIS} --bind '*' '-::*' >/dev/null & \
             until {place} redis-cli set key {value} >/dev/null; do sleep 0.2; done"
        )
    };
    expect(
        &mut shell,
        &[
            (&server("", "first"), &[]),
            (&server("on_vnic", "peer"), &[]),
            (VNIC, &[]),
            (
                "ip -6 addr add 2001:db8:7::1/64 dev vnic51; \
                 ip -6 addr add 2001:db8:2::15/64 dev eth0; \
                 on_vnic /usr/sbin/ip -6 addr add 2001:db8:7::2/64 dev vnic52; \
                 on_card /usr/sbin/ip -6 addr add 2001:db8:2::53/64 dev vnic53",
                &[],
            ),
            (
                "ip -6 addr show dev vnic51",
                &["fe80::ff:fe00:51/64", "2001:db8:7::1/64"],
            ),
            (&asked("on_vnic", "2001:db8:7::1"), &["first"]),
            (&asked("on_card", "2001:db8:2::15"), &["first"]),
            (&asked("", "2001:db8:7::2"), &["peer"]),
            (&asked("", "fe80::ff:fe00:52%vnic51"), &["peer"]),
            (&asked("on_vnic", "fe80::ff:fe00:51%vnic52"), &["first"]),
        ],
    )?;
    shell.leave().map(drop)
}

fn comes_again(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    let server = format!(
        "{REDIS} >/dev/null & until redis-cli set key value >/dev/null; do sleep 0.2; done"
    );
    let asked = "on_vnic redis-cli -h 192.168.7.1 get key";
    expect(&mut shell, &[(&server, &[])])?;
    for _ in 0..3 {
        expect(
            &mut shell,
            &[
                (VNIC, &[]),
                (asked, &["value"]),
                ("on_card redis-cli -h 10.0.2.15 get key", &["value"]),
                (
                    "dladm delete-vnic -t vnic51; ip link show dev vnic51 || echo gone",
                    &["gone"],
                ),
            ],
        )?;
    }
    shell.leave().map(drop)
}

/// Another VNIC takes the shard that the first one had.
const ANOTHER: &str = "dladm delete-vnic -t vnic51; \
                       dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61";
const HEARD: &[&str] = &["hello by datagram", "hello by stream"];
const ASKED: &str = "on_vnic beside hello 192.168.7.1";

fn moves(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    expect(
        &mut shell,
        &[
            (VNIC, &[]),
            (
                "beside echo 192.168.7.1 >/tmp/echo & until grep -q ready /tmp/echo; do sleep 0.1; done",
                &[],
            ),
            (ASKED, HEARD),
            (ANOTHER, &[]),
            (VNIC, &[]),
            (ASKED, HEARD),
            ("ip addr del 192.168.7.1/24 dev vnic51", &[]),
            ("ip addr add 192.168.7.1/24 dev vnic61", &[]),
            (
                "on_vnic /usr/sbin/ip neigh flush dev vnic52; echo so",
                &["so"],
            ),
            (ASKED, HEARD),
            ("beside hello 192.168.7.1", HEARD),
        ],
    )?;
    shell.leave().map(drop)
}

fn connected_goes_on(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    let asks =
        |round: u32| format!("echo >&3; until grep 'round {round}' /tmp/kept; do sleep 0.1; done");
    expect(
        &mut shell,
        &[
            (VNIC, &[]),
            (
                "on_vnic beside echo >/tmp/echo & until grep -q ready /tmp/echo; do sleep 0.1; done",
                &[],
            ),
            (
                "mkfifo /tmp/ask; beside keep 192.168.7.2 </tmp/ask >/tmp/kept & exec 3>/tmp/ask",
                &[],
            ),
            (&asks(1), &["hello in round 1"]),
            (ANOTHER, &[]),
            (VNIC, &[]),
            (&asks(2), &["hello in round 2"]),
        ],
    )?;
    shell.leave().map(drop)
}

fn overhears(setup: &Setup) -> Result<(), String> {
    let mut shell = scene(setup)?;
    expect(
        &mut shell,
        &[
            (
                "beside overhear >/tmp/over & until grep -q ready /tmp/over; do sleep 0.1; done",
                &[],
            ),
            (VNIC, &[]),
            (
                "beside echo >/tmp/echo & until grep -q ready /tmp/echo; do sleep 0.1; done",
                &[],
            ),
            (ASKED, HEARD),
            (
                "until grep 192.168.7.1 /tmp/over; do sleep 0.1; done",
                &["overheard 192.168.7.1"],
            ),
        ],
    )?;
    shell.leave().map(drop)
}
