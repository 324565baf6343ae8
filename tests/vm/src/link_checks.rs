//! The checks of the link layer that need load or an exchange, behind each card.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

use qemu::namespace::{MACHINE, TAP};

use crate::Test;
use crate::card_filters::host;
use crate::guest::Setup;
use crate::link_counts::{kstat, kstats, on_each_card};
use crate::link_frames::{Dhcp, LEASED, SERVER, VNIC, dhcp, udp};
use crate::links::{PORT, host_pings, number};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a loaded ring is polled, and interrupts again when it is idle (link layer)",
        polled,
    ),
    (
        "a sender is told once to wait and once to go on, whatever the card (link layer)",
        blocked,
    ),
    (
        "what waits for a client that stalls is bounded, and the rest stays in the card (link layer)",
        stalled,
    ),
    (
        "a link with a limit sends as much as that and no more, whatever the card (link layer)",
        limited,
    ),
    (
        "a limit on UDP holds UDP back and lets TCP pass, whatever the card (link layer)",
        udp_only,
    ),
    (
        "interrupts are kept apart as told, and not for a client that waits (link layer)",
        moderated,
    ),
    (
        "a leased address passes until it is released, whatever the card (link layer)",
        leased,
    ),
];

/// Section 1, check 4, as far as the host lets a ring be loaded: a flood of pings whose answers keep
/// the CPU busy, and one of datagrams that lie in the host's queue until the card has room; then rest.
fn polled(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        let sum = |shell: &mut Operator, name: &str| {
            kstat(shell, &format!("eth0:0:/^mac_rx_hwlane[0-9]+$/:{name}"))
        };
        // A busy host may bring frames one by one.
        let mut polls = 0;
        for _ in 0..FLOODS_MAX {
            let said = shell.ask("ping -4 -n -q -f -l 200 -c 2000 -W 5 10.0.2.2")?;
            if !is_answered(&said) {
                return Err(format!("nothing came: {said}"));
            }
            if setup.has_tap() {
                flood_with_datagrams()?;
            }
            polls = sum(shell, "polls")?;
            if polls != 0 {
                break;
            }
        }
        if polls == 0 {
            return Err("no frame was polled".into());
        }
        let before = sum(shell, "intrs")?;
        for _ in 0..3 {
            shell.ask("sleep 1; p 1 10.0.2.2")?;
        }
        let after = sum(shell, "intrs")?;
        let lost = kstat(shell, "eth0:0:mac_rx_ring_0_*:hdrops")?;
        match after > before && lost == 0 {
            true => Ok(()),
            false => Err(format!(
                "{before} interrupts, then {after}; {lost} frames lost"
            )),
        }
    })
}

const FLOODS_MAX: u32 = 5;
const DATAGRAMS: u32 = 2000;

fn flood_with_datagrams() -> Result<(), String> {
    let sent = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        (0..DATAGRAMS).try_for_each(|_| socket.send_to(&[0; 64], (MACHINE, PORT)).map(drop))
    });
    sent.map_err(|error| error.to_string())
}

/// Whether any ping was; a busy host loses some of a flood.
fn is_answered(said: &str) -> bool {
    said.contains(" received") && !said.contains(" 0 received")
}

const VNICS: &str = "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:51 vnic1";
/// The least limit.
const BITS_PER_SECOND: u64 = 1_200_000;

/// Section 1, check 6. A limit stands for the card without descriptors, which the host fills
/// again at once; what waits and who is told is the same.
fn blocked(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        shell.ask(&format!(
            "{VNICS}; dladm set-linkprop -t -p maxbw=1.2M vnic1"
        ))?;
        let frame = udp(VNIC, [192, 168, 10, 77], 1400);
        shell.ask(&format!("send_frame -n 1300 vnic1 {frame}"))?;
        let count = |shell: &mut Operator, name: &str| {
            kstat(shell, &format!("vnic1:0:mac_tx_hwlane*:{name}"))
        };
        let told = [count(shell, "blockcnt")?, count(shell, "unblockcnt")?];
        if told[0] != 1 {
            return Err(format!("told to wait and to go on {told:?} times"));
        }
        shell.ask(
            "until kstat -p 'vnic1:0:mac_tx_hwlane*:unblockcnt' | grep -q '[1-9]$'; do sleep 1; done",
        )?;
        let told = [count(shell, "blockcnt")?, count(shell, "unblockcnt")?];
        match told {
            [1, 1] => Ok(()),
            _ => Err(format!(
                "told to wait and to go on {told:?} times at the end"
            )),
        }
    })
}

/// Section 1, check 7, by the machine's own clock: what it sends in ten seconds is never more than
/// 5 % above what the limit allows in the time around. It is no more than 5 % below what that allows
/// in the time between in one of a few tries: a busy host may keep a machine from running.
fn limited(setup: &Setup) -> Result<(), String> {
    // Half a minute of waiting, for one clock and one bucket however many CPUs there are.
    if !setup.has_rings() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        shell.ask(&format!(
            "{VNICS}; dladm set-linkprop -t -p maxbw=1.2M vnic1"
        ))?;
        let mut sent = Vec::new();
        for _ in 0..LIMIT_TRIES {
            let (bits, least, most) = sent_in_ten_seconds(shell)?;
            if bits > most {
                return Err(format!("{bits} bits, not {least} to {most}"));
            }
            if bits >= least {
                return Ok(());
            }
            sent.push((bits, least));
            shell.ask("sleep 10")?;
        }
        Err(format!("bits and the least there are to be: {sent:?}"))
    })
}

const LIMIT_TRIES: u32 = 3;

/// While there is always something to send: the bits that go, and how many may.
fn sent_in_ten_seconds(shell: &mut Operator) -> Result<(u64, u64, u64), String> {
    let frame = udp(VNIC, [192, 168, 10, 77], 1400);
    let sent = "cut -d' ' -f1 /proc/uptime; kstat -p 'link:0:vnic1:obytes64'; \
                cut -d' ' -f1 /proc/uptime";
    shell.ask(&format!("send_frame -n 990 vnic1 {frame}; sleep 0.5"))?;
    let before = reading(&shell.ask(sent)?)?;
    shell.ask(&format!(
        "sleep 5; send_frame -n 500 vnic1 {frame}; sleep 5"
    ))?;
    let after = reading(&shell.ask(sent)?)?;
    let bits = (after.bytes - before.bytes) * 8;
    let allowed = |centiseconds: u64| BITS_PER_SECOND * centiseconds / 100;
    let most = allowed(after.end - before.start) * 105 / 100;
    let least = allowed(after.start - before.end) * 95 / 100;
    Ok((bits, least, most))
}

/// Section 1, check 5, of rings that can be polled, as all of these can: a limit on what a link
/// receives has its client stall. No more than the low mark and one batch wait; the ring is not
/// pulled meanwhile, and goes on afterwards.
fn stalled(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        shell.ask(&format!(
            "{VNICS}; ip addr add 10.0.2.51/24 dev vnic1; p 1 -I 10.0.2.51 10.0.2.2; \
             dladm set-linkprop -t -p maxbw=1.2M vnic1"
        ))?;
        // The limit also holds back answers to the host's questions who that is.
        let known = "neighbour replace 10.0.2.51 lladdr 02:00:00:00:00:51 nud permanent dev";
        let known: Vec<&str> = known.split(' ').chain([TAP]).collect();
        host("ip", &known)?;
        let taken = "eth0:0:mac_rx_ring_0_*:ipackets";
        let clock = "cut -d' ' -f1 /proc/uptime";
        let before = (centiseconds(&shell.ask(clock)?)?, kstat(shell, taken)?);
        flood_slowly("10.0.2.51")?;
        let came = kstat(shell, taken)? - before.1;
        let passed = centiseconds(&shell.ask(clock)?)? - before.0;
        let through = BITS_PER_SECOND * passed / 100 * 105 / 100 / (8 * FLOOD_FRAME_BYTES);
        if came < WAITING_MAX || came > through + WAITING_MAX {
            return Err(format!("{came} frames came, {through} could pass"));
        }
        let said = shell.ask("dladm reset-linkprop -t -p maxbw vnic1; sleep 1; p 5 10.0.2.2")?;
        let is_answered = said.contains("5 answered") && host_pings("10.0.2.51", 5)?;
        match is_answered {
            true => Ok(()),
            false => Err(format!("nothing comes afterwards: {said}")),
        }
    })
}

/// Frames that may wait above a ring that can be polled.
const WAITING_MAX: u64 = 256 + 64;
/// On the wire, of the datagrams of [`flood_slowly`].
const FLOOD_FRAME_BYTES: u64 = 1442;

/// So many that they fill what may wait, and no faster than a host's queue and a machine take them.
fn flood_slowly(to: &str) -> Result<(), String> {
    let sent = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        (0..100).try_for_each(|_| {
            thread::sleep(Duration::from_millis(20));
            (0..30).try_for_each(|_| socket.send_to(&[0; 1400], (to, PORT)).map(drop))
        })
    });
    sent.map_err(|error| error.to_string())
}

fn centiseconds(said: &str) -> Result<u64, String> {
    let time = said
        .split_whitespace()
        .last()
        .map(|time| time.replace('.', ""));
    let time = time.and_then(|time| time.parse().ok());
    time.ok_or_else(|| format!("no time in {said}"))
}

/// What was sent, and between which times it was read, in hundredths of seconds.
struct Reading {
    start: u64,
    bytes: u64,
    end: u64,
}

fn reading(said: &str) -> Result<Reading, String> {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let time = |line: &str| line.replace('.', "").parse().ok();
    let parsed = lines.last_chunk().and_then(|[start, bytes, end]| {
        Some(Reading {
            start: time(start)?,
            bytes: bytes.split_once('\t')?.1.parse().ok()?,
            end: time(end)?,
        })
    });
    parsed.ok_or_else(|| format!("no times and bytes in {said}"))
}

/// Section 3, check 4: while datagrams wait for their limit, a connection is opened and closed.
fn udp_only(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let listener = TcpListener::bind(("0.0.0.0", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    // Each connection is closed at once, for as long as the tests run.
    thread::spawn(move || listener.incoming().for_each(drop));
    on_each_card(setup, |shell| {
        shell.ask(
            "flowadm add-flow -t -l eth0 -a transport=udp -p maxbw=1.2M datagrams; \
             flowadm add-flow -t -l eth0 -a transport=tcp streams",
        )?;
        let own = shell.ask("dladm show-phys -m -p -o address eth0")?;
        let own = own
            .lines()
            .last()
            .unwrap_or_default()
            .replace(['\\', ':'], "");
        let frame = udp(VNIC, [192, 168, 10, 77], 1400);
        let frame = format!("{}{}{}", &frame[..12], own.trim(), &frame[24..]);
        shell.ask(&format!("send_frame -n 900 eth0 {frame}"))?;
        let said = shell.ask(&format!(
            "busybox nc -w 20 10.0.2.2 {} </dev/null && echo closed",
            address.port()
        ));
        let is_closed = said.as_ref().is_ok_and(|said| said.contains("\nclosed"));
        let sent = number(shell, "flowadm show-flow -s -p -o opackets datagrams")?;
        let streams = number(shell, "flowadm show-flow -s -p -o opackets streams")?;
        match is_closed && sent < 900 && streams >= 2 {
            true => Ok(()),
            false => Err(format!(
                "{sent} datagrams, {streams} segments were sent: {said:?}"
            )),
        }
    })
}

/// Section 1's interrupt throttling: 8000 a second are 125 microseconds apart. Without a word,
/// pings one after another are not delayed.
fn moderated(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        let spacing = "eth0:0:mac_rx_hwlane*:intrspacing";
        let said = shell.ask("ping -4 -n -q -c 1000 -i 0.002 -W 5 10.0.2.2")?;
        if !is_answered(&said) || kstat(shell, spacing)? != 0 {
            return Err(format!("{} ns after {said}", kstat(shell, spacing)?));
        }
        let told = shell.ask("dladm set-linkprop -t -p intr-throttling=8000 eth0 && echo told")?;
        let rings = kstats(shell, spacing)?.len() as u64;
        let wanted = match told.contains("\ntold") {
            true => 125_000 * rings,
            // virtio's card has no such register.
            false => 0,
        };
        if kstat(shell, spacing)? != wanted {
            return Err(format!("{} ns after {told}", kstat(shell, spacing)?));
        }
        let said = shell.ask("p 5 10.0.2.2")?;
        if !said.contains("5 answered") {
            return Err(format!("pings were lost: {said}"));
        }
        shell.ask("dladm reset-linkprop -t -p intr-throttling eth0")?;
        match kstat(shell, spacing)? {
            0 => Ok(()),
            left => Err(format!("{left} ns are left")),
        }
    })
}

/// Section 2, check 6: the server is another VNIC of the card.
fn leased(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        shell.ask(&format!(
            "{VNICS}; dladm set-linkprop -t -p protection=ip-nospoof vnic1; \
             dladm create-vnic -t -l eth0 -m 2:0:0:0:0:{SERVER:x} vnic2"
        ))?;
        passes(shell, false, "before the lease")?;
        for (message, link) in [
            (Dhcp::Discover, "vnic1"),
            (Dhcp::Offer, "vnic2"),
            (Dhcp::Request, "vnic1"),
        ] {
            shell.ask(&format!("send_frame {link} {}", dhcp(message)))?;
        }
        passes(shell, false, "before the server's last word")?;
        shell.ask(&format!("send_frame vnic2 {}", dhcp(Dhcp::Ack)))?;
        passes(shell, true, "with the lease")?;
        shell.ask(&format!("send_frame vnic1 {}", dhcp(Dhcp::Release)))?;
        passes(shell, false, "after the release")
    })
}

/// Whether a frame from the leased address goes.
fn passes(shell: &mut Operator, wanted: bool, when: &str) -> Result<(), String> {
    let dropped = "vnic1:0:mac_misc_stat:ipspoofed";
    let before = kstat(shell, dropped)?;
    shell.ask(&format!("send_frame vnic1 {}", udp(VNIC, LEASED, 18)))?;
    let after = kstat(shell, dropped)?;
    match after - before == u64::from(!wanted) {
        true => Ok(()),
        false => Err(format!(
            "{when}: {:?}",
            kstats(shell, "vnic1:0:mac_misc_stat:")?
        )),
    }
}
