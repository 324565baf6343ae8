//! What connections cost that nothing happens on: the guest's memory, and CPU time.
//!
//! One client address has too few ports for 100 000 connections to one port, so there are ten.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bench_pair::{Better, Guest, Table, build};
use qemu::namespace;

use crate::client;
use crate::run::Run;

const CONNECTIONS_PORT: u16 = 9;
const REPORT_PORT: u16 = 10;
const SOURCES: u8 = 10;
/// From each source.
const CONNECTIONS: u32 = 10_000;
const WATCHED: Duration = Duration::from_secs(10);
/// What a system may take to come to rest.
const REST: Duration = Duration::from_secs(2);
/// Ends the clients if the guest stops answering; they need a tenth of it.
const PATIENCE_S: &str = "300";
/// Linux needs more than 512 MiB for so many connections.
const MEMORY: &str = "2G";

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let server = build("benches/network/programs/idle_server.c")?;
    let mut guest = run.system.boot(&["-m", MEMORY, &server])?;
    guest.wait_until("report", || Report::ask().is_ok())?;
    let (alone_ms, before) = (idle_cpu_ms(&guest), Report::ask()?);
    let from_each = run.amount(CONNECTIONS);
    let clients =
        Clients::open(from_each).map_err(|why| format!("{why}; {}", guest.last_words()))?;
    let count = f64::from(from_each) * f64::from(SOURCES);
    let (with_all_ms, after) = (idle_cpu_ms(&guest), Report::ask()?);
    drop(clients);
    if after.connections != count {
        return Err(format!(
            "{} of {count} connections were accepted",
            after.connections
        ));
    }
    let used_bytes = (before.free_kib - after.free_kib) * 1024.0 / count;
    let rows = [
        (
            format!("memory for each of {count} idle connections, bytes"),
            used_bytes,
        ),
        (
            format!("QEMU's CPU time in 10 s with {count} idle connections, ms"),
            with_all_ms,
        ),
        (
            "QEMU's CPU time in 10 s without a connection, ms".into(),
            alone_ms,
        ),
    ];
    for (name, figure) in rows {
        table.add(&name, Better::Less, run.system, figure);
    }
    Ok(())
}

fn idle_cpu_ms(guest: &Guest) -> f64 {
    thread::sleep(REST);
    let before_s = guest.cpu_s();
    thread::sleep(WATCHED);
    (guest.cpu_s() - before_s) * 1000.0
}

/// What the server in the guest says.
struct Report {
    connections: f64,
    free_kib: f64,
}

impl Report {
    fn ask() -> Result<Self, String> {
        let said = Self::read().map_err(|error| format!("the guest's report: {error}"))?;
        Ok(Self {
            connections: client::number(&said, "Connections:")?,
            free_kib: client::number(&said, "MemFree:")?,
        })
    }

    fn read() -> std::io::Result<String> {
        let patience = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&Guest::address(REPORT_PORT), patience)?;
        stream.set_read_timeout(Some(patience))?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    }
}

/// Open connections. Dropping them closes all.
struct Clients(Child);

impl Clients {
    fn open(from_each: u32) -> Result<Self, String> {
        let program = build("benches/network/programs/idle_clients.c")?;
        let to = Guest::address(CONNECTIONS_PORT);
        let (count, port) = (from_each.to_string(), to.port().to_string());
        let mut command = Command::new("timeout");
        command.args([PATIENCE_S, &program, &to.ip().to_string(), &port, &count]);
        for number in 0..SOURCES {
            let source = Ipv4Addr::new(10, 0, 2, 100 + number);
            // A second round has them already.
            namespace::add_address(source);
            command.arg(source.to_string());
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut clients = Self(pipes.spawn().map_err(|error| error.to_string())?);
        let output = clients
            .0
            .stdout
            .take()
            .ok_or("the clients have no output")?;
        let mut lines = BufReader::new(output).lines();
        for _ in 0..SOURCES {
            match lines.next() {
                Some(Ok(line)) if line == "ready" => {}
                Some(Ok(line)) => return Err(line),
                _ => return Err("the clients ended".into()),
            }
        }
        Ok(clients)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // They end with their input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
