//! What the link layer counts in a machine, by illumos' names, behind each card.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Test;
use crate::build;
use crate::guest::Setup;
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
            let said = shell.ask("p -c 20 10.0.2.2")?;
            if !said.contains("20 received") {
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
        // What is allowed goes, and bumps none.
        let before = drops(shell)?;
        let sent = "dladm show-link -s -p -o opackets vnic1";
        let packets = number(shell, sent)?;
        shell.ask(&format!(
            "send_frame vnic1 {}",
            udp(VNIC, [192, 168, 10, 77])
        ))?;
        if number(shell, sent)? != packets + 1 || drops(shell)? != before {
            return Err(format!(
                "an honest frame: {before:?}, then {:?}",
                drops(shell)?
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

const VNIC: u8 = 0x51;
const BROADCAST: &str = "ffffffffffff";

fn station(last: u8) -> String {
    format!("0200000000{last:02x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A forgery, the frame, and the reason for which it is dropped.
fn forged() -> [(&'static str, String, &'static str); 5] {
    let lldp = format!("{}{}88cc{}", station(0x99), station(VNIC), "00".repeat(46));
    [
        (
            "a foreign source address",
            udp(0x52, [192, 168, 10, 77]),
            "macspoofed",
        ),
        ("a foreign protocol", lldp, "restricted"),
        (
            "a foreign IP source",
            udp(VNIC, [192, 168, 11, 1]),
            "ipspoofed",
        ),
        ("a foreign ARP sender", arp([192, 168, 11, 1]), "ipspoofed"),
        ("a foreign DHCP hardware address", dhcp(0x52), "dhcpspoofed"),
    ]
}

/// A datagram to the discard port, without a checksum of its own.
fn udp(src: u8, from: [u8; 4]) -> String {
    let payload = [0; 18];
    let ports = [[0x03, 0xe8], [0, 9]];
    let frame = ip_udp(
        src,
        &station(0x99),
        from,
        [192, 168, 10, 1],
        ports,
        &payload,
    );
    hex_of(&frame)
}

fn hex_of(parts: &(String, Vec<u8>)) -> String {
    format!("{}{}", parts.0, hex(&parts.1))
}

fn ip_udp(
    src: u8,
    dst: &str,
    from: [u8; 4],
    to: [u8; 4],
    ports: [[u8; 2]; 2],
    payload: &[u8],
) -> (String, Vec<u8>) {
    let len = (payload.len() + 28) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    let sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&folded.to_be_bytes());
    packet.extend(ports.concat());
    packet.extend((len - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    (format!("{dst}{}0800", station(src)), packet)
}

/// Who has 192.168.10.1? The VNIC says that it has `host` (RFC 826).
fn arp(host: [u8; 4]) -> String {
    let vnic = station(VNIC);
    let head = format!("{BROADCAST}{vnic}08060001080006040001{vnic}");
    format!(
        "{head}{}000000000000c0a80a01{}",
        hex(&host),
        "00".repeat(18)
    )
}

/// A DHCPDISCOVER (RFC 2131) with the hardware address of a station.
fn dhcp(chaddr: u8) -> String {
    let mut message = vec![1, 1, 6, 0, 0, 0, 0, 1];
    message.resize(28, 0);
    message.extend([2, 0, 0, 0, 0, chaddr]);
    message.resize(236, 0);
    message.extend([0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255]);
    let ports = [[0, 68], [0, 67]];
    hex_of(&ip_udp(VNIC, BROADCAST, [0; 4], [255; 4], ports, &message))
}
