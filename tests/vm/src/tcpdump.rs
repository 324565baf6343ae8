//! Debian's tcpdump, unmodified, in the machine: what it sees is what passed.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::Test;
use crate::guest::{Guest, Setup};
use crate::redis;
use crate::resp::Redis;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "tcpdump writes a file of Redis' traffic that holds what its client did",
        file_of_redis,
    ),
    (
        "tcpdump shows packets of loopback and of any interface as text",
        text_of_loopback,
    ),
    (
        "a stopped tcpdump loses packets and says so, and Redis serves on",
        stopped_reader,
    ),
];

/// Requests of the client whose packets are counted.
pub const REQUESTS: usize = 40;
/// How long a sniffer may take to do what it was told.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Redis' packets that carry bytes.
pub const PAYLOAD: &str =
    "tcp port 6379 and (ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2)) != 0";
const ADDED: [&str; 4] = [
    "--add",
    "/usr/bin/tcpdump",
    "--add",
    "/usr/bin/redis-server",
];

/// Starts a machine with a shell that first starts Redis, then, told to by a line of its
/// input, does what `script` says.
pub fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<(Guest, SocketAddr), String> {
    let script =
        format!("redis-server --protected-mode no --save '' > /dev/null & read go; {script}");
    let args = [flags, &ADDED, &["busybox", "sh", "-c", &script]].concat();
    let (guest, address) = setup.serve(6379, &args)?;
    guest.expect_answer(address, b"PING\r\n")?;
    Ok((guest, address))
}

fn file_of_redis(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("tcpdump")?;
    let volume = format!("{}:/data", folder.0.display());
    let packets = 2 * REQUESTS;
    let script =
        format!("tcpdump -Z root -ni eth0 -c {packets} -w /data/file '{PAYLOAD}'; echo kept");
    let (mut guest, address) = start(setup, &["-v", &volume], &script)?;
    guest.type_text("go\n")?;
    guest.expect("listening on eth0", PATIENCE)?;
    let mut redis = Redis::connect(address)?;
    for _ in 0..REQUESTS {
        redis.call(&["PING"])?;
    }
    guest.expect(&format!("{packets} packets captured"), PATIENCE)?;
    guest.expect("0 packets dropped by kernel", PATIENCE)?;
    // It writes the end of the file last.
    guest.expect("kept", PATIENCE)?;
    let file = folder.0.join("file");
    for direction in ["tcp dst port 6379", "tcp src port 6379"] {
        let lines = read_back(&file.to_string_lossy(), direction)?;
        if lines != REQUESTS {
            return Err(format!("{lines} packets are `{direction}`, not {REQUESTS}"));
        }
    }
    Ok(())
}

/// How many packets of a file the host's tcpdump counts.
pub fn read_back(file: &str, filter: &str) -> Result<usize, String> {
    let output = Command::new("tcpdump")
        .args(["-Z", "root", "-nr", file, filter])
        .output()
        .map_err(|error| format!("tcpdump: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).lines().count()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn text_of_loopback(setup: &Setup) -> Result<(), String> {
    // The second time packets come by a ring of slots.
    let script = "for i in lo 'any --immediate-mode'; do \
         tcpdump -Z root -lni $i -c 3 tcp port 9 & read go; \
         busybox nc 127.0.0.1 9 < /dev/null; busybox nc 127.0.0.1 9 < /dev/null; \
         wait $!; done";
    let (mut guest, _) = start(setup, &[], script)?;
    guest.type_text("go\n")?;
    let refused = "127.0.0.1.9 > 127.0.0.1.";
    guest.expect("listening on lo, link-type EN10MB", PATIENCE)?;
    guest.type_text("go\n")?;
    guest.expect(refused, PATIENCE)?;
    guest.expect("listening on any, link-type LINUX_SLL2", PATIENCE)?;
    guest.type_text("go\n")?;
    guest.expect("lo    In  IP 127.0.0.1.9 > 127.0.0.1.", PATIENCE)
}

fn stopped_reader(setup: &Setup) -> Result<(), String> {
    let script = "tcpdump -Z root -ni eth0 -B 64 -w /tmp/file & read go; \
         kill -STOP $!; echo stopped; read go; kill -CONT $!; sleep 1; kill -INT $!; wait $!; \
         grep no_free_block /proc/net/packet_drops; read go";
    let (mut guest, address) = start(setup, &[], script)?;
    guest.type_text("go\n")?;
    guest.expect("listening on eth0", PATIENCE)?;
    guest.type_text("go\n")?;
    guest.expect("stopped", PATIENCE)?;
    redis::benchmark(
        &guest,
        address,
        &["-n", "2000", "-c", "10", "-t", "set,get"],
    )?;
    guest.type_text("go\n")?;
    guest.expect("packets dropped by kernel", PATIENCE)?;
    if guest.console().contains("\n0 packets dropped by kernel") {
        return Err(guest.explain("dropped nothing"));
    }
    let mut redis = Redis::connect(address)?;
    redis.call(&["PING"]).map(drop)
}
