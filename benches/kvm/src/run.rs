//! Boots the host and every guest in turn, and collects the figures.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use nested::{Guest, Host};

use crate::exits::Exits;
use crate::load::{self, CLIENTS, Load, Server};
use crate::meter;
use crate::subject::Subject;

/// Where the host's files go.
const FOLDER: &str = "build/kvm";
/// A guest that is not up by then will not be.
const PATIENCE: Duration = Duration::from_secs(300);
/// A client program refuses to make fewer requests than it has connections.
const CLIENTS_MAX: u32 = 100;
/// How long an idle guest is watched, and left alone before.
const IDLE_SECONDS: u32 = 10;

/// What one load costs one subject, for each request.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Exits.
    pub exits: Exits,
    /// Time of the virtual CPU's thread, in microseconds.
    pub cpu_us: f64,
    /// Requests per second.
    pub rate: f64,
}

/// A row: a load and its figures, in the subjects' order.
pub type Row = (&'static str, Vec<Figure>);

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Figures {
    /// For each load.
    pub loads: Vec<Row>,
    /// Of each subject: a second of an idle machine.
    pub idle: Vec<Exits>,
    /// Of each subject: from the start of QEMU to the first answer of Redis.
    pub start: Vec<Start>,
}

/// A start.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Exits.
    pub exits: f64,
    /// Time of the virtual CPU's thread.
    pub cpu_s: f64,
}

/// A host with all guests, and which of them serves what.
struct Bench {
    host: Host,
    subjects: Vec<Subject>,
    servers: Vec<Server>,
    /// For each server the guest of each subject.
    guests: Vec<Vec<Guest>>,
}

impl Bench {
    fn boot(subjects: &[Subject], servers: Vec<Server>) -> Result<Self, String> {
        let output = Path::new(FOLDER);
        let of_server = |server: &Server| {
            let of_subject = |subject: &Subject| subject.guest(server, output);
            subjects.iter().map(of_subject).collect()
        };
        let guests: Vec<Vec<Guest>> = servers
            .iter()
            .map(of_server)
            .collect::<Result<_, String>>()?;
        let udp_client = load::udp_client()?;
        let programs: Vec<&str> = CLIENTS.into_iter().chain([udp_client.as_str()]).collect();
        let mut host = Host::boot(output, &programs, guests.iter().flatten())?;
        meter::prepare(&mut host)?;
        Ok(Self {
            host,
            subjects: subjects.to_vec(),
            servers,
            guests,
        })
    }
}

/// What one guest showed.
struct Served {
    start: Start,
    /// For each load.
    loads: Vec<Figure>,
    /// A second without requests.
    idle: Option<Exits>,
}

/// Measures servers of some subjects; a tenth of each load if `quick`. A guest that fails has no figures.
pub fn measure(subjects: &[Subject], servers: Vec<Server>, quick: bool) -> Result<Figures, String> {
    let mut bench = Bench::boot(subjects, servers)?;
    let mut figures = Figures::default();
    for (server, guests) in bench.servers.iter().zip(&bench.guests) {
        let mut rows: Vec<Row> = server
            .loads
            .iter()
            .map(|load| (load.name, vec![]))
            .collect();
        for (&subject, guest) in bench.subjects.iter().zip(guests) {
            eprintln!("{}", guest.name());
            let served = served(&mut bench.host, guest, subject, server, quick);
            bench.host.stop(guest)?;
            let served = served.unwrap_or_else(|why| {
                eprintln!("  failed: {why}");
                Served::nothing(server)
            });
            for (row, figure) in rows.iter_mut().zip(served.loads) {
                row.1.push(figure);
            }
            if server.name() == "redis" {
                figures.start.push(served.start);
            }
            figures.idle.extend(served.idle);
        }
        figures.loads.extend(rows);
    }
    Ok(figures)
}

impl Served {
    fn nothing(server: &Server) -> Self {
        let nothing = Figure {
            exits: Exits::NONE,
            cpu_us: f64::NAN,
            rate: f64::NAN,
        };
        Self {
            start: Start {
                exits: f64::NAN,
                cpu_s: f64::NAN,
            },
            loads: vec![nothing; server.loads.len()],
            idle: (server.name() == "udp").then_some(Exits::NONE),
        }
    }
}

/// Starts a guest and measures it.
fn served(
    host: &mut Host,
    guest: &Guest,
    subject: Subject,
    server: &Server,
    quick: bool,
) -> Result<Served, String> {
    let start = start(host, guest, subject, server)?;
    let loads = server.loads.iter().map(|load| {
        let figure = under(host, guest, subject, load, quick)?;
        eprintln!(
            "  {}, {}: {:.3} exits, {:.0} µs, {:.0}/s",
            load.name,
            subject.name(),
            figure.exits.total(),
            figure.cpu_us,
            figure.rate
        );
        Ok(figure)
    });
    let loads = loads.collect::<Result<_, String>>()?;
    let idle = match server.name() {
        "udp" => Some(idle(host, guest)?),
        _ => None,
    };
    Ok(Served { start, loads, idle })
}

/// Starts a guest and waits until its server answers.
fn start(
    host: &mut Host,
    guest: &Guest,
    subject: Subject,
    server: &Server,
) -> Result<Start, String> {
    host.start(guest)?;
    let wait = format!(
        "h={}; for i in $(seq 1200); do {} && break; usleep 50000; done; [ $i -lt 1200 ]",
        subject.address(),
        server.answers
    );
    let sample = meter::count(host, guest, &wait)
        .map_err(|why| format!("{why}{}", last_words(host, guest)))?;
    Ok(Start {
        exits: sample.exits.total(),
        cpu_s: sample.cpu_ns / 1e9,
    })
}

/// What a guest and its QEMU said last.
fn last_words(host: &mut Host, guest: &Guest) -> String {
    let name = guest.name();
    let script = format!("tail -n 20 /tmp/{name}/complaints /tmp/{name}/output");
    host.run(&script, PATIENCE).unwrap_or_else(|error| error)
}

/// A load, after a tenth of it has made the guest warm.
fn under(
    host: &mut Host,
    guest: &Guest,
    subject: Subject,
    load: &Load,
    quick: bool,
) -> Result<Figure, String> {
    let requests = match quick {
        true => load.requests / 10,
        false => load.requests,
    };
    let client = |requests: u32| format!("h={}; n={requests}; {}", subject.address(), load.client);
    meter::count(host, guest, &client((requests / 10).max(CLIENTS_MAX)))?;
    let sample = meter::count(host, guest, &client(requests))?;
    let requests = f64::from(requests);
    Ok(Figure {
        exits: sample.exits.per(requests),
        cpu_us: sample.cpu_ns / 1000.0 / requests,
        rate: requests / sample.seconds.max(0.01),
    })
}

/// The exits of a second in which nobody wants anything of the guest.
fn idle(host: &mut Host, guest: &Guest) -> Result<Exits, String> {
    host.run(&format!("sleep {IDLE_SECONDS}"), PATIENCE)?;
    let sample = meter::count(host, guest, &format!("sleep {IDLE_SECONDS}"))?;
    Ok(sample.exits.per(sample.seconds))
}

/// Leaves the host's shell to whoever speaks on standard input.
pub fn shell(subjects: &[Subject], servers: Vec<Server>) -> Result<(), String> {
    let mut bench = Bench::boot(subjects, servers)?;
    let names: Vec<&str> = bench.guests.iter().flatten().map(Guest::name).collect();
    eprintln!("guests: {}", names.join(" "));
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let guest = |name: &str| {
            bench
                .guests
                .iter()
                .flatten()
                .find(|guest| guest.name() == name)
        };
        let (verb, name) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match (verb, guest(name)) {
            ("start", Some(guest)) => bench.host.start(guest).map(|()| String::new()),
            ("stop", Some(guest)) => bench.host.stop(guest).map(|()| String::new()),
            _ => bench.host.run(&line, PATIENCE),
        };
        println!("{}\n== {line}", answer.unwrap_or_else(|error| error));
    }
    Ok(())
}
