//! What is asked of which guest, and how often.

use std::fs;
use std::path::Path;

use bench_pair::{OUTPUT, build, server};
use nested::{Guest, System};

/// One of the systems that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Linux as Debian starts it.
    Linux,
    /// Linux with `mitigations=off`.
    Unmitigated,
    /// Sietch.
    Sietch,
}

impl Subject {
    /// In the order of the page.
    pub const ALL: [Self; 3] = [Self::Linux, Self::Unmitigated, Self::Sietch];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Unmitigated => "Linux, `mitigations=off`",
            Self::Sietch => "Sietch",
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Unmitigated => "unmitigated",
            Self::Sietch => "sietch",
        }
    }

    fn system(self) -> System {
        match self {
            Self::Linux | Self::Unmitigated => System::Linux,
            Self::Sietch => System::Sietch,
        }
    }
}

/// A server in a guest, and what is measured of it.
pub struct Server {
    name: &'static str,
    args: Vec<String>,
    /// A line of the host's shell that succeeds once the server answers.
    pub answers: &'static str,
    /// What is asked of it.
    pub loads: Vec<Load>,
}

/// One load.
pub struct Load {
    /// Its row on the page.
    pub name: &'static str,
    /// Requests of a whole measurement.
    pub requests: u32,
    /// A line of the host's shell that makes as many requests as `$n` says.
    pub client: &'static str,
}

const fn load(name: &'static str, requests: u32, client: &'static str) -> Load {
    Load {
        name,
        requests,
        client,
    }
}

/// Programs that the clients are.
pub const CLIENTS: [&str; 3] = ["redis-benchmark", "redis-cli", "ab"];
/// The client of datagrams, built here.
pub const UDP_CLIENT: &str = "benches/kvm/clients/udp_window.c";

/// Asks memcached for a key in one connection, and counts the answers.
const MEMCACHED: &str = "(echo 'set k 0 0 3'; echo abc; yes 'get k' | head -n $n; echo quit) | \
    sed 's/$/\\r/' | nc 10.0.2.15 11211 | grep -c VALUE | grep -qx $n";

/// The servers.
pub fn servers() -> Result<Vec<Server>, String> {
    Ok(vec![redis(), udp()?, http()?, memcached(), nginx()?])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn redis() -> Server {
    Server {
        name: "redis",
        args: words(&["redis-server", "--protected-mode", "no", "--save", ""]),
        answers: "timeout 5 redis-cli -h 10.0.2.15 ping 2>/dev/null | grep -q PONG",
        loads: vec![
            load(
                "Redis GET, 50 clients",
                8000,
                "redis-benchmark -h 10.0.2.15 -t get -c 50 -n $n",
            ),
            load(
                "Redis SET, 50 clients",
                8000,
                "redis-benchmark -h 10.0.2.15 -t set -c 50 -n $n",
            ),
            load(
                "Redis GET, 1 client",
                1500,
                "redis-benchmark -h 10.0.2.15 -t get -c 1 -n $n",
            ),
            load(
                "Redis GET, 50 clients, pipeline 16",
                60_000,
                "redis-benchmark -h 10.0.2.15 -t get -c 50 -P 16 -n $n",
            ),
            load(
                "Redis SET, 50 clients, pipeline 16",
                60_000,
                "redis-benchmark -h 10.0.2.15 -t set -c 50 -P 16 -n $n",
            ),
        ],
    }
}

fn udp() -> Result<Server, String> {
    Ok(Server {
        name: "udp",
        args: vec![server("udp_echo")?],
        answers: "timeout 2 udp_window 10.0.2.15 1 1",
        loads: vec![
            load("UDP echo, window 64", 10_000, "udp_window 10.0.2.15 64 $n"),
            load("UDP echo, window 1", 1500, "udp_window 10.0.2.15 1 $n"),
        ],
    })
}

fn http() -> Result<Server, String> {
    Ok(Server {
        name: "http",
        args: vec![server("http_once")?],
        answers: "timeout 5 wget -q -O /dev/null http://10.0.2.15/",
        loads: vec![load(
            "new connection, 100 clients",
            2000,
            "ab -q -c 100 -n $n http://10.0.2.15/",
        )],
    })
}

fn memcached() -> Server {
    Server {
        name: "memcached",
        args: words(&["memcached", "-u", "nobody", "-t", "1"]),
        answers: "echo version | timeout 2 nc 10.0.2.15 11211 | grep -q VERSION",
        loads: vec![load(
            "memcached, one connection, requests on end",
            20_000,
            MEMCACHED,
        )],
    }
}

fn nginx() -> Result<Server, String> {
    Ok(Server {
        name: "nginx",
        args: nginx_files()?,
        answers: "timeout 5 wget -q -O /dev/null http://10.0.2.15/",
        loads: vec![load(
            "nginx, 1 KiB, 50 connections that stay",
            4000,
            "ab -q -k -c 50 -n $n http://10.0.2.15/",
        )],
    })
}

impl Server {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its program and arguments, as `sietch run` takes them.
    pub fn args(&self) -> impl Iterator<Item = &str> {
        self.args.iter().map(String::as_str)
    }

    /// The guest in which a subject serves; its files are kept in the folder `output`.
    pub fn guest(&self, subject: Subject, output: &Path) -> Result<Guest, String> {
        let name = format!("{}-{}", subject.tag(), self.name);
        let mut args = vec!["-m", "256M"];
        if subject == Subject::Unmitigated {
            args.extend(["--kernel-option", "mitigations=off"]);
        }
        args.extend(self.args());
        Guest::new(output, &name, subject.system(), &args, &[])
    }
}

/// The path of the client of datagrams.
pub fn udp_client() -> Result<String, String> {
    build(UDP_CLIENT)
}

/// nginx' words, with a site of one file.
fn nginx_files() -> Result<Vec<String>, String> {
    let folder = format!("{OUTPUT}/kvm-nginx");
    let configuration = "daemon off;\nworker_processes 1;\nerror_log stderr;\npid /run/nginx.pid;\n\
        events { worker_connections 512; }\n\
        http { access_log off; keepalive_requests 1000000000;\nserver { listen 80; root /site; } }\n";
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(format!("{folder}/index.html"), "s".repeat(1024)))
        .and_then(|()| fs::write(format!("{OUTPUT}/kvm-nginx.conf"), configuration))
        .map_err(|error| format!("{folder}: {error}"))?;
    let site = format!("{folder}:/site");
    let file = format!("{OUTPUT}/kvm-nginx.conf:/nginx.conf");
    let words = ["--add", &site, "--add", &file, "nginx", "-c", "/nginx.conf"];
    Ok(words.map(str::to_string).to_vec())
}
