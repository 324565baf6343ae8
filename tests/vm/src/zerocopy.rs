//! Memory that a program lends to a connection, taken away while it is in flight.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::{BOOT_PATIENCE, Guest, Setup};

/// The tests.
pub const TESTS: &[Test] = &[(
    "memory lent by MSG_ZEROCOPY reaches its peer whole after munmap and exit",
    lent,
)];

const SOURCE: &str = "tests/programs/net_zerocopy.c";
const PORT: u16 = 7017;
/// What the program sends: its pieces, and one more before it ends.
const BYTES: usize = (64 * 1024 + 1) * 17;

fn lent(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new(SOURCE))?;
    let (program, port) = (program.to_string_lossy(), PORT.to_string());
    let (guest, address) = setup.serve(PORT, &[&program, &port])?;
    guest.expect("listening", BOOT_PATIENCE)?;
    let connect = || TcpStream::connect(address).map_err(|error| guest.explain(&error.to_string()));
    let bytes = read_slowly(connect()?).map_err(|error| guest.explain(&error.to_string()))?;
    if bytes.len() != BYTES {
        return Err(guest.explain(&format!("sent {} of {BYTES} bytes", bytes.len())));
    }
    if let Some(at) = (0..BYTES).find(|at| bytes[*at] != pattern(*at)) {
        return Err(guest.explain(&format!("sent a wrong byte at {at}")));
    }
    connect()?;
    expect_end(guest)
}

/// Lets the program fill what is between us before it reads.
fn read_slowly(mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(BOOT_PATIENCE))?;
    thread::sleep(Duration::from_millis(300));
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The program's own.
fn pattern(at: usize) -> u8 {
    (((at * 31) >> 3) ^ (at / 4096)) as u8
}

fn expect_end(guest: Guest) -> Result<(), String> {
    let end = guest.wait(BOOT_PATIENCE)?;
    match end.status == 0 && !end.console.contains("not ok") {
        true => Ok(()),
        false => Err(format!("the program said {}", end.console)),
    }
}
