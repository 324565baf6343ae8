//! Peers that open connections by the thousand while programs hold all memory.
//!
//! What a handshake needs may be refused then, and the peer repeats it; nobody else may be hurt.
//! When the programs end, the machine serves again.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build::{self, Link};
use crate::clients::together;
use crate::guest::Setup;
use crate::operator::Operator;
use crate::redis_leaks::REDIS;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "thousands of handshakes do no harm while programs hold all memory",
    beside_hogs,
)];

const HOG: &str = "tests/harness/memhog.c";
const MEMORY: &str = "128M";
/// Backlogs are no limit: the queue is as long as Linux's settings allow at most.
const SERVE: &str = "redis-server --protected-mode no --save '' --logfile /dev/null \
    --tcp-backlog 4096 & redis=$!";
/// Each is killed when memory is out, and the next one begins. Who ends them need not fork for
/// it: that may be refused while they hold all memory.
const HOGS: &str = "(trap 'kill $hog; exit' TERM; \
    while true; do memhog & hog=$!; wait $hog; done) >/dev/null 2>&1 & hogs=$!";
const NO_HOGS: &str = "kill $hogs; wait $hogs; true";
const CALLERS: usize = 16;
const CALLS: usize = 4500 / CALLERS + 1;
/// Callers do not wait for long: what counts is that the machine is asked.
const CALL_PATIENCE: Duration = Duration::from_millis(200);
/// All calls together.
const PATIENCE: Duration = Duration::from_secs(30);

fn beside_hogs(setup: &Setup) -> Result<(), String> {
    if !setup.has_address() {
        return Ok(());
    }
    let hog = build::c_linked(Path::new(HOG), Link::StaticMusl)?;
    let hog = format!("{}:/bin/memhog", hog.display());
    let flags = ["-m", MEMORY, "--add", REDIS, "--add", &hog];
    let (mut operator, address) = Operator::start(setup, 6379, &flags)?;
    operator.ask(SERVE)?;
    operator.guest.expect_answer(address, b"PING\r\n")?;
    operator.ask(HOGS)?;
    let calls = call(address)?;
    operator.ask(NO_HOGS)?;
    println!(
        "     {} of {} calls came through",
        calls.len(),
        CALLERS * CALLS
    );
    drop(calls);
    operator.guest.expect_answer(address, b"PING\r\n")?;
    operator.ask("kill $redis; wait $redis")?;
    expect_status(&operator.leave()?, 0)
}

/// Connections that came about, all open.
fn call(address: SocketAddr) -> Result<Vec<TcpStream>, String> {
    let (open, deadline) = (Mutex::new(Vec::new()), Instant::now() + PATIENCE);
    together(CALLERS, |_| {
        let calls = (0..CALLS).take_while(|_| Instant::now() < deadline);
        let connected =
            calls.filter_map(|_| TcpStream::connect_timeout(&address, CALL_PATIENCE).ok());
        let connected: Vec<_> = connected.collect();
        open.lock()
            .map_err(|error| error.to_string())?
            .extend(connected);
        Ok(())
    })?;
    open.into_inner().map_err(|error| error.to_string())
}
