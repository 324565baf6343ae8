//! What a flood of strangers' packets leaves of Redis' rate.
//!
//! 5000 packets a second: an emulated CPU is some twenty times slower than a real one, so
//! they weigh here as 100 000 do there. One thread of this host sends them with ease.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use bench_pair::{Better, Guest, Table, build};

use crate::client;
use crate::row::Run;

const PORT: u16 = 6379;
const REQUESTS: u32 = 30_000;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP_REQUESTS: u32 = 3_000;
const PACKETS_PER_S: &str = "5000";
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const SCRIPT: &str = "redis-server --protected-mode no --save ''";
/// What the flood program calls them, and what the page does.
const KINDS: [(&str, &str); 2] = [("syn", "SYNs"), ("echo", "echo requests")];

/// One round. A flood goes on before the connections are opened, so they must pass it, too.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let mut guest = run.boot(&["--add", REDIS, "busybox", "sh", "-c", SCRIPT])?;
    guest.wait_for_answer(PORT, b"PING\r\n")?;
    let requests = run.amount(REQUESTS);
    rate(WARM_UP_REQUESTS)?;
    let alone = rate(requests)?;
    table.add("Redis, GET, k/s", Better::More, run.system, alone / 1000.0);
    for (kind, name) in KINDS {
        let flood = Flood::start(kind)?;
        let flooded = rate(requests);
        let sent = flood.stop()?;
        if sent == 0.0 {
            return Err(format!("no {name} were sent"));
        }
        let row = format!("Redis, GET, under {PACKETS_PER_S} {name} a second, % of it");
        table.add(&row, Better::More, run.system, flooded? / alone * 100.0);
    }
    Ok(())
}

/// Requests a second.
fn rate(requests: u32) -> Result<f64, String> {
    let host = Guest::address(PORT).ip().to_string();
    let (count, start) = (requests.to_string(), Instant::now());
    let args = ["--csv", "-c", "50", "-h", &host, "-t", "get", "-n", &count];
    client::run("redis-benchmark", &args)?;
    Ok(f64::from(requests) / start.elapsed().as_secs_f64())
}

/// A flood that goes on. Dropping it ends it, too, with its input.
struct Flood(Child);

impl Flood {
    fn start(kind: &str) -> Result<Self, String> {
        let program = build("benches/network/programs/flood.c")?;
        let host = Guest::address(PORT).ip().to_string();
        let mut command = Command::new(&program);
        command.args([kind, &host, PACKETS_PER_S]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = pipes.spawn().map_err(|error| error.to_string())?;
        Ok(Self(child))
    }

    /// Ends it; how many packets left.
    fn stop(mut self) -> Result<f64, String> {
        drop(self.0.stdin.take());
        let mut said = String::new();
        let output = self.0.stdout.take();
        output
            .map(|mut output| output.read_to_string(&mut said))
            .transpose()
            .map_err(|error| error.to_string())?;
        Ok(client::number(&said, "Sent:")? - client::number(&said, "Refused:")?)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
