//! Our own sniffer beside Redis in a machine.

use std::process::Command;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::resp::Redis;
use crate::tcpdump::{PATIENCE, PAYLOAD, REQUESTS, read_back, start};
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "snoop keeps Redis' traffic in a file that tcpdump and snoop read",
        file_of_redis,
    ),
    (
        "snoop shows packets as they pass until it is told to end",
        lines_of_redis,
    ),
];

fn file_of_redis(setup: &Setup) -> Result<(), String> {
    let program = build::tool("snoop", "snoop")?;
    let folder = Folder::new("snoop")?;
    let volume = format!("{}:/data", folder.0.display());
    let added = format!("{}:/bin/snoop", program.display());
    let packets = 2 * REQUESTS;
    let script = format!("snoop -d eth0 -c {packets} -o /data/file '{PAYLOAD}'");
    let flags = ["-v", &volume, "--add", &added];
    let (mut guest, address) = start(setup, &flags, &script)?;
    guest.type_text("go\n")?;
    guest.expect("Using device eth0 (promiscuous mode)", PATIENCE)?;
    let mut redis = Redis::connect(address)?;
    for _ in 0..REQUESTS {
        redis.call(&["PING"])?;
    }
    // More may pass the filter before it lets go.
    guest.expect(&format!("{packets} packets shown or kept, "), PATIENCE)?;
    guest.expect("passed the filter, 0 were dropped", PATIENCE)?;
    let file = folder.0.join("file").to_string_lossy().into_owned();
    for direction in ["tcp dst port 6379", "tcp src port 6379"] {
        let lines = read_back(&file, direction)?;
        if lines != REQUESTS {
            return Err(format!("{lines} packets are `{direction}`, not {REQUESTS}"));
        }
    }
    let output = Command::new(program).args(["-i", &file]).output();
    let output = output.map_err(|error| format!("snoop: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout).lines().count();
    match lines == packets {
        true => Ok(()),
        false => Err(format!("snoop shows {lines} packets of its file")),
    }
}

fn lines_of_redis(setup: &Setup) -> Result<(), String> {
    let program = build::tool("snoop", "snoop")?;
    let added = format!("{}:/bin/snoop", program.display());
    let script = "snoop tcp dst port 6379 & read go; kill -INT $!; wait $!; echo ended with $?";
    let (mut guest, address) = start(setup, &["--add", &added], script)?;
    guest.type_text("go\n")?;
    guest.expect("Using device eth0 (promiscuous mode)", PATIENCE)?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["PING"])?;
    guest.expect("TCP D=6379 S=", PATIENCE)?;
    guest.type_text("go\n")?;
    guest.expect("packets shown or kept", PATIENCE)?;
    guest.expect("ended with 0", PATIENCE)
}
