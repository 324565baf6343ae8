//! What a flood of strangers' packets leaves of Redis' rate.
//!
//! 5000 packets a second: an emulated CPU is some twenty times slower than a real one, so
//! they weigh here as 100 000 do there. One thread of this host sends them with ease.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench_pair::{Better, Guest, Table, build};

use crate::client;
use crate::row::Run;

const PORT: u16 = 6379;
/// How long each rate is watched.
const WATCHED_MS: u32 = 12_000;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP: Duration = Duration::from_secs(1);
const PACKETS_PER_S: &str = "5000";
/// A request, and the answer where there is no such key.
const ASK: &[u8] = b"GET key\r\n";
const ANSWER: &[u8] = b"$-1\r\n";
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const SCRIPT: &str = "redis-server --protected-mode no --save ''";
/// What the flood program calls them, and what the page does.
const KINDS: [(&str, &str); 2] = [("syn", "SYNs"), ("echo", "echo requests")];

/// One round, of a connection that is open before the floods.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let mut guest = run.boot(&["--add", REDIS, "busybox", "sh", "-c", SCRIPT])?;
    guest.wait_for_answer(PORT, b"PING\r\n")?;
    let mut stream = TcpStream::connect(Guest::address(PORT)).map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    let watched = Duration::from_millis(run.amount(WATCHED_MS).into());
    rate(&mut stream, WARM_UP).map_err(text)?;
    let alone = rate(&mut stream, watched).map_err(text)?;
    let name = "one connection to Redis, GET, k/s";
    table.add(name, Better::More, run.system, alone / 1000.0);
    for (kind, name) in KINDS {
        let flood = Flood::start(kind)?;
        let flooded = rate(&mut stream, watched);
        if flood.stop()? == 0.0 {
            return Err(format!("no {name} were sent"));
        }
        let row = format!("the same under {PACKETS_PER_S} {name} a second, % of it");
        let left = flooded.map_err(text)? / alone * 100.0;
        table.add(&row, Better::More, run.system, left);
    }
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// Requests a second, one after the other.
fn rate(stream: &mut TcpStream, watched: Duration) -> std::io::Result<f64> {
    let (start, mut answers) = (Instant::now(), 0_u32);
    let mut answer = [0; ANSWER.len()];
    while start.elapsed() < watched {
        stream.write_all(ASK)?;
        stream.read_exact(&mut answer)?;
        if answer != ANSWER {
            return Err(std::io::Error::other("another answer"));
        }
        answers += 1;
    }
    Ok(f64::from(answers) / start.elapsed().as_secs_f64())
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
        let child = pipes.spawn().map_err(text)?;
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
            .map_err(text)?;
        Ok(client::number(&said, "Sent:")? - client::number(&said, "Refused:")?)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
