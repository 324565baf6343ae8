//! A connection that is taken apart and put together again while its client streams
//! (`docs/tcp-repair.md`). Linux would answer the client with a reset in between, so there this
//! needs a packet filter.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a connection is moved between two processes while its client streams, which sees nothing",
    moved,
)];

const PROGRAM: &str = "tests/harness/repaired_echo.c";
const PORT: u16 = 7007;
const BYTES: usize = 3_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// Each process has the connection for less than 100 000 bytes.
const MOVES_MIN: usize = BYTES / 100_000;

fn moved(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new(PROGRAM))?;
    let args = [&*program.to_string_lossy(), &PORT.to_string()];
    let (guest, address) = setup.serve(PORT, &args)?;
    guest.expect("ready", PATIENCE)?;
    stream(address).map_err(|why| guest.explain(&why))?;
    let end = guest.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    let moves = end
        .console
        .lines()
        .filter_map(|line| line.strip_prefix("moves: "));
    let moves: usize = moves
        .filter_map(|said| said.trim().parse::<usize>().ok())
        .sum();
    match moves >= MOVES_MIN {
        true => Ok(()),
        false => Err(format!("{moves} moves: {}", end.console)),
    }
}

/// Sends as fast as the server takes it, and compares what comes back.
fn stream(address: SocketAddr) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let mut client = TcpStream::connect(address).map_err(io)?;
    client.set_read_timeout(Some(PATIENCE)).map_err(io)?;
    let sent: Vec<u8> = (0..BYTES).map(|at| (at / 255 + at) as u8).collect();
    let mut got = vec![0; BYTES];
    let mut writer = client.try_clone().map_err(io)?;
    thread::scope(|scope| {
        let sender = scope.spawn(|| writer.write_all(&sent));
        let read = client.read_exact(&mut got);
        let wrote = sender.join();
        let wrote = wrote.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
        read.and(wrote)
    })
    .map_err(io)?;
    // Only now: what both ends have closed is not for TCP_REPAIR alone to move.
    client.shutdown(Shutdown::Write).map_err(io)?;
    if client.read(&mut [0]).map_err(io)? != 0 {
        return Err("more came back than was sent".into());
    }
    match got == sent {
        true => Ok(()),
        false => Err(format!(
            "{} bytes came back, not all as they were",
            got.len()
        )),
    }
}
