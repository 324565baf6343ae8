//! What the link layer counts in a machine, by illumos' names, behind each card.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::link_frames::{VNIC, arp, dhcp_wrong, lldp, udp};
use crate::links::{number, operator_with};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "each card's rings, lanes and chains are counted with and without VNICs (link layer)",
        rings_and_lanes,
    ),
    (
        "each forgery that a VNIC sends is dropped for one reason, whatever the card (link layer)",
        forgeries,
    ),
];

/// All cards that we drive.
pub const CARDS: [&str; 3] = ["virtio", "e1000", "igb"];
const SEND_FRAME: &str = "tests/programs/scenes/send_frame.c";
/// Frames that are allowed; many more than a stack sends on its own in some seconds.
const HONEST: u64 = 100;

/// Statistics by their four names.
pub type Kstats = BTreeMap<String, u64>;

/// A shell in a machine with the tools, `kstat` among them.
pub fn operator(setup: &Setup) -> Result<Operator, String> {
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let sender = format!(
        "{}:/bin/send_frame",
        build::c(Path::new(SEND_FRAME))?.display()
    );
    operator_with(setup, &["--add", &kstat, "--add", &sender])
}

/// What `kstat` shows of what a pattern chooses.
pub fn kstats(shell: &mut Operator, pattern: &str) -> Result<Kstats, String> {
    let said = shell.ask(&format!("kstat -p '{pattern}'"))?;
    let row = |line: &str| {
        let (name, value) = line.trim().split_once('\t')?;
        Some((name.to_string(), value.parse::<i64>().ok()?.cast_unsigned()))
    };
    let all: Kstats = said.lines().filter_map(row).collect();
    match all.is_empty() {
        true => Err(format!("`kstat -p {pattern}` says nothing: {said}")),
        false => Ok(all),
    }
}

/// The sum of what a pattern chooses.
pub fn kstat(shell: &mut Operator, pattern: &str) -> Result<u64, String> {
    Ok(kstats(shell, pattern)?.values().sum())
}

/// Calls `test` with a machine for each card that the setup can have.
pub fn on_each_card(
    setup: &Setup,
    test: impl Fn(&mut Operator) -> Result<(), String>,
) -> Result<(), String> {
    let cards = CARDS
        .iter()
        .filter(|card| **card == "virtio" || setup.has_our_pci());
    for card in cards {
        let mut shell = operator(&setup.with_nic(card))?;
        test(&mut shell).map_err(|why| format!("{card}: {why}"))?;
        shell.leave()?;
    }
    Ok(())
}

fn rings_and_lanes(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        let steps = [
            "true",
            "dladm create-vnic -t -l eth0 vnic1",
            "dladm delete-vnic -t vnic1",
        ];
        let mut before = 0;
        for step in steps {
            shell.ask(step)?;
            let said = shell.ask("p 20 10.0.2.2")?;
            if !said.contains("20 answered") {
                return Err(format!("after `{step}`: {said}"));
            }
            let after = lanes_add_up(shell)?;
            if after < before + 20 {
                return Err(format!("after `{step}`: {before}, then {after} frames"));
            }
            before = after;
        }
        Ok(())
    })
}

/// Each lane's frames came by interrupt or were polled, in chains; says how many there were.
fn lanes_add_up(shell: &mut Operator) -> Result<u64, String> {
    let rings = kstat(shell, "eth0:0:mac_rx_ring_0_*:ipackets")?;
    let sent = kstat(shell, "eth0:0:mac_tx_ring*:opackets")?;
    let counts = kstats(shell, "eth0:0:/^mac_rx_hwlane[0-9]+$/:")?;
    let sum = |names: &[&str]| -> u64 {
        let is_named = |name: &str| names.iter().any(|one| name.ends_with(&format!(":{one}")));
        counts
            .iter()
            .filter(|(name, _)| is_named(name))
            .map(|(_, count)| count)
            .sum()
    };
    let frames = sum(&["ipackets"]);
    let chains = sum(&["chainunder10", "chain10to50", "chainover50"]);
    let adds_up = frames == sum(&["intrs", "polls"])
        && sum(&["rbytes"]) == sum(&["intrbytes", "pollbytes"])
        && (1..=frames).contains(&chains)
        && frames >= rings
        && sent >= 20;
    match adds_up {
        true => Ok(frames),
        false => Err(format!(
            "{rings} frames of rings, {sent} sent, and {counts:?}"
        )),
    }
}

/// Section 2, check 4: frames by hand, with the one counter that each bumps.
fn forgeries(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        shell.ask(
            "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:51 -p \
             protection=mac-nospoof,ip-nospoof,dhcp-nospoof,restricted,allowed-ips=192.168.10.0/24 vnic1",
        )?;
        for (what, frame, reason) in forged() {
            let before = drops(shell)?;
            let sent = shell.ask(&format!("send_frame vnic1 {frame}"))?;
            let after = drops(shell)?;
            let grown: Vec<_> = after
                .iter()
                .filter(|(name, count)| before[*name] != **count)
                .collect();
            let only = format!("vnic1:0:mac_misc_stat:{reason}");
            let is_so = match grown[..] {
                [(name, count)] => *name == only && *count == before[name] + 1,
                _ => false,
            };
            if !is_so {
                return Err(format!("{what}: {grown:?} after {sent}"));
            }
        }
        // What is allowed goes, and bumps none. The VNIC's own stack sends some frames meanwhile:
        // it asks for neighbours and routers.
        let before = drops(shell)?;
        let sent = "dladm show-link -s -p -o opackets vnic1";
        let packets = number(shell, sent)?;
        shell.ask(&format!(
            "send_frame -n {HONEST} vnic1 {}",
            udp(VNIC, [192, 168, 10, 77], 18)
        ))?;
        let counted = number(shell, sent)?;
        let dropped = drops(shell)?;
        let are_sent = (packets + HONEST..packets + 2 * HONEST).contains(&counted);
        if !are_sent || dropped != before {
            return Err(format!(
                "honest frames: {packets} sent and {before:?}, then {counted} and {dropped:?}"
            ));
        }
        let said = shell.ask(&format!(
            "dladm set-linkprop -t -p allowed-ips={} vnic1 || echo refused $?",
            (1..=33)
                .map(|host| format!("10.0.0.{host}"))
                .collect::<Vec<_>>()
                .join(",")
        ))?;
        match said.contains("refused 1") {
            true => Ok(()),
            false => Err(format!("33 addresses are allowed: {said}")),
        }
    })
}

fn drops(shell: &mut Operator) -> Result<Kstats, String> {
    kstats(shell, "vnic1:0:mac_misc_stat:/spoofed|restricted/")
}

/// A forgery, the frame, and the reason for which it is dropped.
fn forged() -> [(&'static str, String, &'static str); 5] {
    [
        (
            "a foreign source address",
            udp(0x52, [192, 168, 10, 77], 18),
            "macspoofed",
        ),
        ("a foreign protocol", lldp(), "restricted"),
        (
            "a foreign IP source",
            udp(VNIC, [192, 168, 11, 1], 18),
            "ipspoofed",
        ),
        ("a foreign ARP sender", arp([192, 168, 11, 1]), "ipspoofed"),
        (
            "a foreign DHCP hardware address",
            dhcp_wrong(),
            "dhcpspoofed",
        ),
    ]
}
