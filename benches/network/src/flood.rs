//! What a flood of unsolicited packets leaves of Redis' rate.
//!
//! A flood loads the host as well: its generator, the tap interface and QEMU share two CPUs with
//! the client and the machine. So each flood is sent twice: first past the machine, to a
//! station that nobody is, which shows what the host alone leaves of the rate, and then to the
//! machine; of that the second line shows what part the guest leaves. The two take short turns,
//! so that a host that others use disturbs both alike.
//!
//! An emulated CPU is some twenty times slower than a real one: 5000 packets a second weigh
//! here as 100 000 do there. One thread of this host sends 50 000 with ease.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench_pair::{Better, Guest, Table, build};
use qemu::namespace;

use crate::client;
use crate::run::Run;

const PORT: u16 = 6379;
/// How long each rate is watched.
const WATCHED_MS: u32 = 6000;
/// In so many turns.
const TURNS: u32 = 6;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP: Duration = Duration::from_secs(1);
const RATES_PER_S: [u32; 3] = [5000, 20_000, 50_000];
/// Behind the tap interface, but no station's.
const ABSENT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 99);
/// A request, and the answer where there is no such key.
const ASK: &[u8] = b"GET key\r\n";
const ANSWER: &[u8] = b"$-1\r\n";
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const SCRIPT: &str = "redis-server --protected-mode no --save ''";
/// What the flood program calls them, and what the page does.
const KINDS: [(&str, &str); 2] = [("syn", "SYNs"), ("echo", "echo requests")];

/// One round, of a connection that is open before the floods.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    if !namespace::add_absent_station(ABSENT) {
        return Err("there is no tap interface to flood".into());
    }
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
        for per_s in RATES_PER_S {
            let flood = |to| Flood { kind, to, per_s };
            let both = [ABSENT, namespace::MACHINE].map(flood);
            let [passing, flooded] = in_turns(&both, &mut stream, watched)?;
            let row = format!("the same while {per_s} {name} a second pass by, % of it");
            table.add(&row, Better::More, run.system, passing / alone * 100.0);
            let row = format!("the same under these {per_s} {name} a second, % of that");
            table.add(&row, Better::More, run.system, flooded / passing * 100.0);
        }
    }
    Ok(())
}

/// The connection's rate during each of two floods.
fn in_turns(
    floods: &[Flood; 2],
    stream: &mut TcpStream,
    watched: Duration,
) -> Result<[f64; 2], String> {
    let mut rates = [0.0; 2];
    for _ in 0..TURNS {
        for (rate, flood) in rates.iter_mut().zip(floods) {
            *rate += flood.leaves(stream, watched / TURNS)? / f64::from(TURNS);
        }
    }
    Ok(rates)
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

/// A flood to be sent.
pub struct Flood {
    /// What the flood program calls it.
    pub kind: &'static str,
    /// The station at which it goes.
    pub to: Ipv4Addr,
    /// Packets.
    pub per_s: u32,
}

impl Flood {
    /// The connection's rate during the flood.
    fn leaves(&self, stream: &mut TcpStream, watched: Duration) -> Result<f64, String> {
        self.during(watched, || rate(stream, watched))?
            .map_err(text)
    }

    /// What `measure` finds during the flood, which ends in time even if no answer comes until then.
    pub fn during<T>(&self, watched: Duration, measure: impl FnOnce() -> T) -> Result<T, String> {
        let sender = self.start()?;
        let (found, sent) = thread::scope(|scope| {
            let sender = scope.spawn(move || {
                thread::sleep(watched);
                sender.stop()
            });
            (measure(), sender.join())
        });
        match sent.map_err(|_| "the flood's thread died")?? {
            0.0 => Err(format!("no flood of {} was sent", self.kind)),
            _ => Ok(found),
        }
    }

    fn start(&self) -> Result<Sender, String> {
        let program = build("benches/network/programs/flood.c")?;
        let mut command = Command::new(&program);
        command.args([self.kind, &self.to.to_string(), &self.per_s.to_string()]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Sender(pipes.spawn().map_err(text)?))
    }
}

/// The program that sends it. Dropping it ends it, too, with its input.
struct Sender(Child);

impl Sender {
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

impl Drop for Sender {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
