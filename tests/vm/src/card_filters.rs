//! What the cards' own filters let in, counted by the cards themselves.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use qemu::namespace;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::links::{PORT, host_pings, number, operator, operator_with};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a card takes all frames while its filters do not suffice, and no longer (link layer)",
        exhausted_filters,
    ),
    (
        "a card takes all frames while a sniffer asks for them, and no longer (link layer)",
        sniffed,
    ),
    (
        "each card takes frames for groups after its last VNIC went (link layer)",
        groups,
    ),
    (
        "a card takes a group's frames while somebody wants them, and no longer (link layer)",
        joined,
    ),
    (
        "a card takes all frames while its interface is promiscuous, and no longer (link layer)",
        promiscuous_by_flag,
    ),
    (
        "a VLAN is heard on the wire with its tag, whatever the card (link layer)",
        tagged,
    ),
];

/// Cards that have filters for several addresses, and how many beside that for their own.
const CARDS: [(&str, u32); 3] = [("virtio", 32), ("e1000", 15), ("igb", 23)];

/// A station that nobody is.
const ABSENT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 99);
/// What the machine makes of the address of its card.
const LINK_LOCAL: &str = "fe80::5054:ff:fe12:3456";
/// Each takes three seconds without an answer.
const TRIES: u32 = 5;
const FOREIGN_FRAMES: u64 = 200;
/// So many come at once. QEMU's igb with several rings loses what the one that a frame is for has no room for, and on a busy
/// host that is soon.
const BURST: u64 = 20;
/// A group that nobody else is in.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 7, 7, 7);
const GROUP_STATION: &str = "01:00:5e:07:07:07";
const MEMBER: &str = "tests/programs/scenes/member.c";
const STATION: &str = "tests/programs/scenes/vlan_station.c";
const SNIFFER: &str = "tests/programs/scenes/promiscuous.c";

fn exhausted_filters(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    for (nic, filters) in CARDS {
        exhaust(&setup.with_nic(nic), filters).map_err(|why| format!("{nic}: {why}"))?;
    }
    Ok(())
}

fn exhaust(setup: &Setup, filters: u32) -> Result<(), String> {
    let mut shell = operator(setup)?;
    shell.ask("vnic() { dladm create-vnic -t -l eth0 -m 2:0:0:0:1:$1 vnic$1; }")?;
    let steps = [
        (format!("for k in $(seq {filters}); do vnic $k; done"), 0),
        (format!("vnic {}", filters + 1), FOREIGN_FRAMES),
        // The one that had no filter gets this one's.
        ("dladm delete-vnic -t vnic1".into(), 0),
    ];
    for (line, wanted) in steps {
        let said = shell.ask(&line)?;
        let taken = foreign_frames_taken(&mut shell)?;
        // The machine's own frames are among them, and the host's queue may lose some.
        if taken.abs_diff(wanted) >= FOREIGN_FRAMES / 2 {
            return Err(format!("{taken} frames and not {wanted} came after {said}"));
        }
    }
    shell.leave().map(drop)
}

/// Section 4's promiscuity reaches the card; twice, since two sniffers are one wish.
fn sniffed(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new(SNIFFER))?;
    let program = format!("{}:/bin/promiscuous", program.display());
    for (nic, _) in CARDS {
        let mut shell = operator_with(&setup.with_nic(nic), &["--add", &program])?;
        let listen =
            "promiscuous eth0 >/tmp/said & until grep -q listening /tmp/said; do sleep 0.1; done";
        let steps = [
            ("true", 0),
            (&format!("{listen}; {listen}"), FOREIGN_FRAMES),
            ("kill $!; sleep 0.5", FOREIGN_FRAMES),
            ("killall promiscuous; sleep 0.5", 0),
        ];
        takes_in_steps(&mut shell, ABSENT, &steps).map_err(|why| format!("{nic}: {why}"))?;
        shell.leave()?;
    }
    Ok(())
}

/// A socket's membership reaches the card, and so do an interface's flags.
fn joined(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new(MEMBER))?;
    let program = format!("{}:/bin/member", program.display());
    let sniffer = build::c(Path::new(SNIFFER))?;
    let sniffer = format!("{}:/bin/promiscuous", sniffer.display());
    let wants = |station: &str| {
        format!(
            "promiscuous eth0 {station} >/tmp/heard & \
             until grep -q listening /tmp/heard; do sleep 0.1; done"
        )
    };
    let group = format!("{GROUP}/32");
    let join = format!(
        "member {GROUP} >/tmp/said & until grep -q member /tmp/said; do sleep 0.1; done; sleep 0.5"
    );
    for (nic, _) in CARDS {
        let mut shell = operator_with(
            &setup.with_nic(nic),
            &["--add", &program, "--add", &sniffer],
        )?;
        // The interface may be a new one for each card.
        host("ip", &["route", "replace", &group, "dev", namespace::TAP])?;
        let steps = [
            ("true", 0),
            (join.as_str(), FOREIGN_FRAMES),
            ("kill $!; sleep 0.5", 0),
            (&wants(GROUP_STATION), FOREIGN_FRAMES),
            ("kill $!; sleep 0.5", 0),
            (&wants("01:00:5e:07:07:08"), 0),
            ("kill $!; sleep 0.5", 0),
            ("ip link set dev eth0 allmulticast on", FOREIGN_FRAMES),
            ("ip link set dev eth0 allmulticast off", 0),
            ("busybox ifconfig eth0 allmulti", FOREIGN_FRAMES),
            ("busybox ifconfig eth0 -allmulti", 0),
        ];
        takes_in_steps(&mut shell, GROUP, &steps).map_err(|why| format!("{nic}: {why}"))?;
        shell.leave()?;
    }
    Ok(())
}

fn promiscuous_by_flag(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    for (nic, _) in CARDS {
        let mut shell = operator(&setup.with_nic(nic))?;
        let steps = [
            ("ip link set dev eth0 promisc on", FOREIGN_FRAMES),
            ("busybox ifconfig eth0 promisc", FOREIGN_FRAMES),
            ("ip link set dev eth0 promisc off", 0),
            ("busybox ifconfig eth0 promisc", FOREIGN_FRAMES),
            ("busybox ifconfig eth0 -promisc", 0),
        ];
        takes_in_steps(&mut shell, ABSENT, &steps).map_err(|why| format!("{nic}: {why}"))?;
        shell.leave()?;
    }
    Ok(())
}

/// A station on the host answers frames that have the tag, by frames that have it.
fn tagged(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    for nic in ["virtio", "e1000", "igb"] {
        let mut shell = operator(&setup.with_nic(nic))?;
        let station = Station::start()?;
        let line = "dladm create-vlan -t -l eth0 -v 7 vlan7; ip addr add 10.7.0.2/24 dev vlan7; \
                    p 5 -s 1400 10.7.0.1";
        let said = shell.ask(line)?;
        drop(station);
        if !said.contains("5 answered") {
            return Err(format!("{nic}: {said}"));
        }
        // What is not of the VLAN still comes without it.
        let said = shell.ask("dladm delete-vlan -t vlan7; p 2 10.0.2.2")?;
        if !said.contains("2 answered") {
            return Err(format!("{nic}: {said}"));
        }
        shell.leave()?;
    }
    Ok(())
}

/// A program on the host that is a station of the VLAN until this is dropped.
struct Station(Child);

impl Station {
    fn start() -> Result<Self, String> {
        let program = build::c(Path::new(STATION))?;
        let mut started = Command::new(program);
        started.args([namespace::TAP, "7"]).stdout(Stdio::piped());
        let mut child = started.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().map(BufReader::new);
        let station = Self(child);
        let mut said = String::new();
        let read = output.map(|mut output| output.read_line(&mut said));
        match read {
            Some(Ok(len)) if len > 0 => Ok(station),
            _ => Err("the station of the VLAN does not start".into()),
        }
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        // One that has ended by itself was told of by the test.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of the frames to an address, so many come after each line.
fn takes_in_steps(shell: &mut Operator, to: Ipv4Addr, steps: &[(&str, u64)]) -> Result<(), String> {
    for (line, wanted) in steps {
        let said = shell.ask(line)?;
        let taken = frames_taken(shell, to)?;
        if taken.abs_diff(*wanted) >= FOREIGN_FRAMES / 2 {
            return Err(format!(
                "{taken} frames and not {wanted} came after {line}: {said}"
            ));
        }
    }
    Ok(())
}

/// How many frames come in while so many are sent to a station that nobody is.
fn foreign_frames_taken(shell: &mut Operator) -> Result<u64, String> {
    frames_taken(shell, ABSENT)
}

fn frames_taken(shell: &mut Operator, to: Ipv4Addr) -> Result<u64, String> {
    if !namespace::add_absent_station(ABSENT) {
        return Err("the host takes no station that nobody is".into());
    }
    let received = "dladm show-link -s -p -o ipackets eth0";
    let before = number(shell, received)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| error.to_string())?;
    for _ in 0..FOREIGN_FRAMES / BURST {
        for _ in 0..BURST {
            let sent = socket.send_to(&[0; 64], (to, PORT));
            sent.map_err(|error| error.to_string())?;
        }
        // It stands behind the others in the host's queue.
        if !host_pings(&namespace::MACHINE.to_string(), 1)? {
            return Err(shell.guest.explain("does not answer"));
        }
    }
    Ok(number(shell, received)? - before)
}

/// The host looks for the machine's link-local address by a multicast.
fn groups(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    for nic in ["virtio", "e1000", "igb"] {
        let mut shell = operator(&setup.with_nic(nic))?;
        shell.ask("dladm create-vnic -t -l eth0 vnic1; dladm delete-vnic -t vnic1")?;
        host("ip", &["-6", "neighbour", "flush", "dev", namespace::TAP])?;
        // Both ends try new addresses for a while before they use them.
        let is_found = (0..TRIES).any(|_| pings_link_local().unwrap_or(false));
        if !is_found {
            let why = format!("is not found by IPv6 behind {nic}");
            return Err(shell.guest.explain(&why));
        }
        let stalls = number(&mut shell, "grep '^0 tx_stalls' /proc/net/card")?;
        if stalls != 0 {
            return Err(format!("{nic}: {stalls} times its queue stood still"));
        }
        shell.leave()?;
    }
    Ok(())
}

fn pings_link_local() -> Result<bool, String> {
    let address = format!("{LINK_LOCAL}%{}", namespace::TAP);
    let said = host("ping", &["-6", "-n", "-c", "1", "-W", "3", &address])?;
    Ok(said.contains(" bytes from "))
}

/// Runs a program here.
pub fn host(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into())
}
