//! Two machines of ours that talk over a bad network: Redis in one, its clients in the
//! other, and a relay between them.
//!
//! What programs see must not depend on the weather: every answer is right, and a large
//! value comes back as it was. What the machines count must agree with what the relay
//! did: frames in and out to the last one, and a dropped segment for each damaged frame.
//! `SEED` in the environment replays a network; `build/relay` has what passed.

use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use relay::{Capture, Counts, End, Plan, Relay, Side, Weather};

use crate::Test;
use crate::guest::Setup;
use crate::operator::Operator;
use crate::redis_leaks::{REDIS, START, STOP};
use crate::status::expect_status;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis serves another machine over a relay that loses nothing",
        over_a_fair_network,
    ),
    (
        "Redis serves another machine over a relay that loses, doubles, reorders and damages",
        over_a_bad_network,
    ),
    ("a SYN that nobody answers is sent again (relay)", lost_syn),
];

const FAIR: Weather = Weather {
    delay: Duration::from_millis(1),
    ..Weather::FAIR
};
const BAD: Weather = Weather {
    loss_ppm: 50_000,
    duplication_ppm: 20_000,
    reordering_ppm: 50_000,
    corruption_ppm: 5_000,
    detour: Duration::from_millis(5),
    ..FAIR
};
const SEED: u64 = 1;
const CAPTURES: &str = "build/relay";
const CAPTURE_BYTES_MAX: u64 = 64 << 20;

const SERVER: &str = "10.9.0.1";
const CLIENTS: [&str; 2] = [
    "/usr/bin/redis-cli:/usr/bin/redis-cli",
    "/usr/bin/redis-benchmark:/usr/bin/redis-benchmark",
];
/// Commands in the file for `redis-cli --pipe`.
const PIPED: usize = 2000;
const BLOB_BYTES: usize = 300_000;
/// How long a conversation may take; emulated machines share a busy host.
const PATIENCE: Duration = Duration::from_secs(300);
/// Looks at the counters until they stand still.
const LOOKS_MAX: u32 = 60;

fn over_a_fair_network(setup: &Setup) -> Result<(), String> {
    let counts = converse(setup, "fair", FAIR)?;
    let dropped: u64 = counts.iter().map(|side| side.relay.dropped()).sum();
    match dropped {
        0 => Ok(()),
        _ => Err(format!("the relay has dropped frames: {counts:?}")),
    }
}

fn over_a_bad_network(setup: &Setup) -> Result<(), String> {
    let [left, right] = converse(setup, "bad", BAD)?;
    let lost = left.relay.lost + right.relay.lost;
    let sent_again = left.sent_again + right.sent_again;
    match lost > 0 && sent_again > 0 && left.relay.damaged + right.relay.damaged > 0 {
        true => Ok(()),
        false => Err(format!("the weather was not bad: {left:?} {right:?}")),
    }
}

/// Runs a conversation in some weather, and returns what both sides have counted.
fn converse(setup: &Setup, name: &str, weather: Weather) -> Result<[SideCounts; 2], String> {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(SEED);
    let name = format!("{name}-{}-cpus", setup.cpus());
    let replay = |why| format!("{why} (SEED={seed}, {CAPTURES}/{name}.pcapng)");
    try_to_converse(setup, &name, weather, seed).map_err(replay)
}

fn try_to_converse(
    setup: &Setup,
    name: &str,
    weather: Weather,
    seed: u64,
) -> Result<[SideCounts; 2], String> {
    let folder = Folder::new(&format!("relay-{name}"))?;
    let files = [write_commands(&folder.0)?, write_blob(&folder.0)?];
    let relay = start_relay(&folder.0, name, weather, seed)?;
    let mut server = machine(setup, &folder.0, Side::Left, &[REDIS])?;
    let additions: Vec<&str> = CLIENTS
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    let mut client = machine(setup, &folder.0, Side::Right, &additions)?;

    server.ask(START)?;
    talk(&mut client)?;
    server.ask(STOP)?;
    let counts = settled(&relay, [&mut server, &mut client])?;
    let [left, right] = counts;
    println!("     seed {seed}: server {left:?}\n     client {right:?}");
    agree(counts)?;
    expect_status(&client.leave()?, 0)?;
    expect_status(&server.leave()?, 0)?;
    relay
        .stop()
        .map_err(|error| format!("the relay has failed: {error}"))?;
    Ok(counts)
}

fn start_relay(folder: &Path, name: &str, weather: Weather, seed: u64) -> Result<Relay, String> {
    let io = |error: std::io::Error| format!("the relay does not start: {error}");
    fs::create_dir_all(CAPTURES).map_err(io)?;
    let file = File::create(format!("{CAPTURES}/{name}.pcapng")).map_err(io)?;
    let epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let capture = Capture::new(BufWriter::new(file), epoch, CAPTURE_BYTES_MAX).map_err(io)?;
    let end = |side: Side| End {
        ours: folder.join(format!("relay-{}", side as u8)),
        theirs: folder.join(format!("machine-{}", side as u8)),
    };
    let plan = Plan {
        ends: Side::BOTH.map(end),
        weather: [weather; 2],
        seed,
        capture: Some(capture),
    };
    Relay::start(plan).map_err(io)
}

/// Starts the machine at one end, with files in it.
fn machine(
    setup: &Setup,
    folder: &Path,
    side: Side,
    additions: &[&str],
) -> Result<Operator, String> {
    let (folder, side) = (folder.display(), side as u8);
    let number = side + 1;
    let net = format!("dgram={folder}/machine-{side},{folder}/relay-{side}");
    let (mac, ip) = (
        format!("02:00:00:00:00:0{number}"),
        format!("10.9.0.{number}/24"),
    );
    // The relay damages what checksums find; not all of IPv6's first words have one.
    let mut flags = vec![
        "--net",
        &net,
        "--mac-address",
        &mac,
        "--ip",
        &ip,
        "--ip6",
        "none",
    ];
    for addition in additions {
        flags.extend(["--add", addition]);
    }
    Operator::start_wired(setup, &flags)
}

/// Commands as `redis-cli --pipe` takes them.
fn write_commands(folder: &Path) -> Result<String, String> {
    let commands = (0..PIPED).map(|number| {
        let (key, value) = (format!("key:{number}"), "x".repeat(number % 200));
        format!(
            "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n",
            key.len(),
            value.len()
        )
    });
    add(folder, "commands", commands.collect::<String>().as_bytes())
}

/// Bytes of which no two kilobytes are alike.
fn write_blob(folder: &Path) -> Result<String, String> {
    let numbers = (0..BLOB_BYTES as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    add(
        folder,
        "blob",
        &numbers.flat_map(u64::to_be_bytes).collect::<Vec<u8>>(),
    )
}

/// Writes a file, and says how it gets into a machine.
fn add(folder: &Path, name: &str, bytes: &[u8]) -> Result<String, String> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|error| format!("{path:?}: {error}"))?;
    Ok(format!("{}:/{name}", path.display()))
}

/// What the client machine asks, and what it must hear.
fn talk(client: &mut Operator) -> Result<(), String> {
    let mut ask = |line: &str, wanted: &str| {
        let said = client.ask_within(line, PATIENCE)?;
        match said.contains(wanted) {
            true => Ok(()),
            false => Err(client.guest.explain(&format!("said {said:?} to `{line}`"))),
        }
    };
    let cli = format!("redis-cli -h {SERVER}");
    ask(&format!("until {cli} ping; do sleep 1; done"), "PONG")?;
    ask(
        &format!("{cli} --pipe < /commands"),
        &format!("errors: 0, replies: {PIPED}"),
    )?;
    ask(&format!("{cli} dbsize"), &PIPED.to_string())?;
    ask(&format!("{cli} -x set blob < /blob"), "OK")?;
    // The client ends what it prints with a line feed.
    let sums = format!(
        "a=$({cli} get blob | busybox sha256sum); \
         b=$({{ cat /blob; echo; }} | busybox sha256sum); [ \"$a\" = \"$b\" ] && echo same $a"
    );
    ask(&sums, "same ")?;
    let benchmark = format!("redis-benchmark -h {SERVER} -q --csv -c 10 -n 500 -t set,get");
    ask(&format!("{benchmark} && echo well"), "well")
}

/// What a machine has counted, and what the relay has of the frames that it sent.
#[derive(Clone, Copy, Debug)]
struct SideCounts {
    relay: Counts,
    frames_in: u64,
    frames_out: u64,
    sent_again: u64,
    /// Packets with a wrong checksum or length.
    refused: u64,
}

impl SideCounts {
    fn read(machine: &mut Operator, relay: Counts) -> Result<Self, String> {
        const READ: &str = "for file in dev snmp; do \
            while read -r line; do echo \"$line\"; done < /proc/net/$file; done";
        let text = machine.ask(READ)?;
        let card = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("eth0:"));
        let card = card.ok_or_else(|| format!("no card in {text}"))?;
        let column = |at: usize| {
            let word = card
                .split_whitespace()
                .nth(at)
                .and_then(|word| word.parse().ok());
            word.ok_or_else(|| format!("no column {at} in {card}"))
        };
        Ok(Self {
            relay,
            frames_in: column(1)?,
            frames_out: column(9)?,
            sent_again: counter(&text, "Tcp:", "RetransSegs")?,
            refused: counter(&text, "Tcp:", "InErrs")? + counter(&text, "Ip:", "InHdrErrors")?,
        })
    }

    /// Whether the machine has counted what the relay has done; `others` are the counts of
    /// what the other machine sent.
    fn check(&self, name: &str, others: Counts) -> Result<(), String> {
        let wanted = (self.relay.received, others.delivered, others.damaged);
        let is_complete = self.relay.is_complete() && others.is_complete();
        match (self.frames_out, self.frames_in, self.refused) == wanted && is_complete {
            true => Ok(()),
            false => Err(format!(
                "the {name} counts {self:?}, its peer's frames {others:?}"
            )),
        }
    }
}

/// A counter of `/proc/net/snmp`, where a line of names precedes one of numbers.
fn counter(text: &str, family: &str, name: &str) -> Result<u64, String> {
    let mut rows = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(family));
    let (names, numbers) = (rows.next().unwrap_or(""), rows.next().unwrap_or(""));
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    let found = pairs.find(|(column, _)| *column == name);
    let number = found.and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| format!("no {family} {name} in {text}"))
}

/// Whether both machines have counted what the relay has done.
fn agree([left, right]: [SideCounts; 2]) -> Result<(), String> {
    left.check("server", right.relay)?;
    right.check("client", left.relay)
}

/// The counters when nothing passes any more, from the left and the right machine. A relay that stands still may only have had
/// no turn: eleven frames may lie in its socket (`net.unix.max_dgram_qlen`) and more in QEMU, for as long as the host's CPUs or
/// disk are others'. So counts that do not agree are looked at again.
fn settled(relay: &Relay, machines: [&mut Operator; 2]) -> Result<[SideCounts; 2], String> {
    let [server, client] = machines;
    let mut settled = Err("the network never comes to rest".into());
    for _ in 0..LOOKS_MAX {
        let before = relay.counts();
        let [left, right] = before;
        let counts = [
            SideCounts::read(server, left)?,
            SideCounts::read(client, right)?,
        ];
        thread::sleep(Duration::from_secs(1));
        if relay.counts() == before && before.iter().all(|side| side.flying == 0) {
            settled = Ok(counts);
            if agree(counts).is_ok() {
                break;
            }
        }
    }
    settled
}

/// Nothing but the SYN's own timer wakes the client.
fn lost_syn(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("relay-syn")?;
    let wire = UnixDatagram::bind(folder.0.join("relay-0")).map_err(|error| error.to_string())?;
    let patience = wire.set_read_timeout(Some(Duration::from_secs(20)));
    patience.map_err(|error| error.to_string())?;
    let mut client = machine(setup, &folder.0, Side::Left, &CLIENTS)?;
    // The first attempt is helped by the answer to its ARP request.
    for _ in 0..2 {
        client.ask("redis-cli -h 10.9.0.2 ping &")?;
        await_syns(&wire, &folder.0)?;
        client.ask("kill $!; sleep 3")?;
    }
    Ok(())
}

/// Answers ARP, and nothing else, until a SYN has come three times.
fn await_syns(wire: &UnixDatagram, folder: &Path) -> Result<(), String> {
    let (mut frame, mut syns) = ([0; 2000], 0);
    while syns < 3 {
        let len = wire.recv(&mut frame);
        let len = len.map_err(|error| format!("{syns} SYNs, then nothing in 20 s: {error}"))?;
        if frame[12..14] == [8, 6] && frame[38..42] == [10, 9, 0, 2] {
            let mut answer = frame[..len].to_vec();
            let station = [2, 0, 0, 0, 0, 2];
            answer[0..6].copy_from_slice(&frame[6..12]);
            answer[6..12].copy_from_slice(&station);
            answer[21] = 2;
            answer[22..28].copy_from_slice(&station);
            answer[28..32].copy_from_slice(&frame[38..42]);
            answer[32..42].copy_from_slice(&frame[22..32]);
            let sent = wire.send_to(&answer, folder.join("machine-0"));
            sent.map_err(|error| error.to_string())?;
        }
        syns += u32::from(frame[12..14] == [8, 0] && frame[23] == 6 && frame[47] == 2);
    }
    Ok(())
}
