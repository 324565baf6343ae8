//! What a machine is told that goes on from a snapshot: the time, and numbers that no other one has.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{SystemTime, UNIX_EPOCH};

use agent::{Frame, Message, Renewal, SEED_BYTES};

/// Tells it, before it runs.
pub fn send(mut port: &UnixStream) -> io::Result<()> {
    let mut seed = [0; SEED_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let renewal = Renewal {
        since_1970_ns: u64::try_from(now).unwrap_or(u64::MAX),
        seed,
    };
    let frame = Frame {
        channel: 0,
        message: Message::Renew(renewal),
    };
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    port.write_all(&bytes)
}
