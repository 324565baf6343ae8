//! What a request would take on hardware: its instructions and its exits, each at a price.
//!
//! Times of a nested machine say nothing, and instructions alone leave out what KVM takes. So
//! the instructions of the whole guest are counted under the translator (`bench_pair::counter`),
//! as `bench-echo` does, and the exits in the nested machine.

use std::process::Command;
use std::time::Duration;

use bench_pair::{Guest, System, counter};

use crate::load::{self, Server};
use crate::run::Figures;
use crate::subject::Subject;

/// A server's kernel and program retire about 1.5 instructions per cycle, at 3 GHz.
pub const INSTRUCTIONS_PER_US: f64 = 4500.0;
/// Leaving the guest, the hypervisor's work and coming back: 1 to 2 µs on the machines of today.
pub const EXIT_US: f64 = 1.2;

/// The port at which each modelled server answers over TCP, and what it is asked.
const REDIS: (u16, &[u8]) = (6379, b"PING\r\n");
const HTTP: (u16, &[u8]) = (80, b"GET / HTTP/1.0\r\n\r\n");

/// One load on Linux with `mitigations=off` and on Sietch.
#[derive(Debug)]
pub struct Modelled {
    /// Its row.
    pub name: &'static str,
    /// Instructions per request, in the order of [`System::BOTH`].
    pub instructions: [f64; 2],
    /// Exits per request.
    pub exits: [f64; 2],
}

impl Modelled {
    /// Microseconds per request.
    pub fn us(&self) -> [f64; 2] {
        [0, 1].map(|at| self.instructions[at] / INSTRUCTIONS_PER_US + self.exits[at] * EXIT_US)
    }
}

/// Counts the instructions of the loads whose clients run on this host as well.
pub fn measure(figures: &Figures) -> Result<Vec<Modelled>, String> {
    load::udp_client()?;
    let mut all = vec![];
    for server in load::servers()? {
        if !matches!(server.name(), "redis" | "udp" | "http") {
            continue;
        }
        let [linux, sietch] = System::BOTH.map(|system| count(system, &server));
        let counted = server.loads.iter().zip(linux?.into_iter().zip(sietch?));
        for (load, (linux, sietch)) in counted {
            let row = figures.loads.iter().find(|row| row.0 == load.name);
            let exits = |subject: Subject| {
                row.and_then(|row| row.1.get(subject as usize))
                    .map_or(f64::NAN, |figure| figure.exits.total())
            };
            all.push(Modelled {
                name: load.name,
                instructions: [linux, sietch],
                exits: [exits(Subject::Unmitigated), exits(Subject::Sietch)],
            });
        }
    }
    Ok(all)
}

/// Instructions per request of each load of a server.
fn count(system: System, server: &Server) -> Result<Vec<f64>, String> {
    eprintln!("instructions of {} on {}", server.name(), system.name());
    let args: Vec<String> = server.args().collect();
    let args = args.iter().map(String::as_str);
    let args: Vec<&str> = ["-m", "256M"].into_iter().chain(args).collect();
    let mut guest = counter::boot(system, &args)?;
    match server.name() {
        "redis" => guest.wait_for_answer(REDIS.0, REDIS.1).map(drop)?,
        "http" => guest.wait_for_answer(HTTP.0, HTTP.1).map(drop)?,
        _ => guest
            .wait_until("echo", || ask("build/bench/udp_window", 1).is_ok())
            .map(drop)?,
    }
    let per_request = server.loads.iter().map(|load| {
        let client = load.client.replace("udp_window", "build/bench/udp_window");
        run(&client, load.requests / 10)?;
        let before = counter::read()?;
        run(&client, load.requests)?;
        let count = counter::read()?.since(&before).total();
        Ok(count as f64 / f64::from(load.requests))
    });
    per_request.collect()
}

fn ask(client: &str, echoes: u32) -> Result<(), String> {
    run(&format!("timeout 2 {client} $h 1 $n"), echoes)
}

fn run(client: &str, requests: u32) -> Result<(), String> {
    const PATIENCE: Duration = Duration::from_secs(600);
    let host = Guest::address(0).ip();
    let script = format!("h={host}; n={requests}; {client}");
    let output = Command::new("timeout")
        .args([&PATIENCE.as_secs().to_string(), "sh", "-c", &script])
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{client}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_exits_have_their_prices() {
        let modelled = Modelled {
            name: "load",
            instructions: [45_000.0, 9_000.0],
            exits: [1.0, 0.5],
        };
        let [linux, sietch] = modelled.us();
        assert!((linux - 11.2).abs() < 1e-9);
        assert!((sietch - 2.6).abs() < 1e-9);
    }
}
