//! The servers, what is asked of them, and how often.

use std::fs;

use bench_pair::{OUTPUT, build, dynamic_server};

/// A server in a guest, and what is measured of it.
pub struct Server {
    name: &'static str,
    /// Its program on this host. It is dynamic, so that a library can stand in front of it.
    program: String,
    args: Vec<String>,
    /// Files of this host and where they are in the guest, as `--add` takes them.
    files: Vec<String>,
    /// A line of the host's shell that succeeds once the server answers at `$h`.
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
    /// A line of the host's shell that makes as many requests of `$h` as `$n` says.
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
    sed 's/$/\\r/' | nc $h 11211 | grep -c VALUE | grep -qx $n";

/// The servers' names.
pub const NAMES: [&str; 5] = ["redis", "udp", "http", "memcached", "nginx"];

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
        program: "/usr/bin/redis-server".into(),
        args: words(&["--protected-mode", "no", "--save", ""]),
        files: vec![],
        answers: "timeout 5 redis-cli -h $h ping 2>/dev/null | grep -q PONG",
        loads: vec![
            load(
                "Redis GET, 50 clients",
                8000,
                "redis-benchmark -h $h -t get -c 50 -n $n",
            ),
            load(
                "Redis SET, 50 clients",
                8000,
                "redis-benchmark -h $h -t set -c 50 -n $n",
            ),
            load(
                "Redis GET, 1 client",
                1500,
                "redis-benchmark -h $h -t get -c 1 -n $n",
            ),
            load(
                "Redis GET, 50 clients, pipeline 16",
                60_000,
                "redis-benchmark -h $h -t get -c 50 -P 16 -n $n",
            ),
            load(
                "Redis SET, 50 clients, pipeline 16",
                60_000,
                "redis-benchmark -h $h -t set -c 50 -P 16 -n $n",
            ),
        ],
    }
}

fn udp() -> Result<Server, String> {
    Ok(Server {
        name: "udp",
        program: dynamic_server("udp_echo")?,
        args: vec![],
        files: vec![],
        answers: "timeout 2 udp_window $h 1 1",
        loads: vec![
            load("UDP echo, window 64", 10_000, "udp_window $h 64 $n"),
            load("UDP echo, window 1", 1500, "udp_window $h 1 $n"),
        ],
    })
}

fn http() -> Result<Server, String> {
    Ok(Server {
        name: "http",
        program: dynamic_server("http_once")?,
        args: vec![],
        files: vec![],
        answers: "timeout 5 wget -q -O /dev/null http://$h/",
        loads: vec![load(
            "new connection, 100 clients",
            2000,
            "ab -q -c 100 -n $n http://$h/",
        )],
    })
}

fn memcached() -> Server {
    Server {
        name: "memcached",
        program: "/usr/bin/memcached".into(),
        // Who is nobody has neither VNICs nor functions.
        args: words(&["-u", "root", "-l", "0.0.0.0", "-t", "1"]),
        files: vec![],
        answers: "echo version | timeout 2 nc $h 11211 | grep -q VERSION",
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
        program: "/usr/sbin/nginx".into(),
        args: words(&["-c", "/nginx.conf"]),
        files: nginx_files()?,
        answers: "timeout 5 wget -q -O /dev/null http://$h/",
        loads: vec![load(
            "nginx, 1 KiB, 50 connections that stay",
            4000,
            "ab -q -k -c 50 -n $n http://$h/",
        )],
    })
}

impl Server {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its files, program and arguments, as `sietch run` takes them.
    pub fn args(&self) -> impl Iterator<Item = String> {
        let files = self.files.iter().flat_map(|file| added(file));
        files.chain([self.program.clone()]).chain(self.args.clone())
    }

    /// What `sietch run` adds to another program's image, so that it can start this one.
    pub fn added(&self) -> impl Iterator<Item = String> {
        let program = format!("{}:{}", self.program, self.in_guest());
        let files = self.files.iter().chain([&program]);
        files
            .flat_map(|file| added(file))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The words with which that one starts it.
    pub fn words(&self) -> impl Iterator<Item = String> {
        [self.in_guest()].into_iter().chain(self.args.clone())
    }

    fn in_guest(&self) -> String {
        format!("/bin/{}", self.name)
    }
}

fn added(file: &str) -> [String; 2] {
    ["--add".into(), file.into()]
}

/// The path of the client of datagrams.
pub fn udp_client() -> Result<String, String> {
    build(UDP_CLIENT)
}

/// nginx' configuration and a site of one file. A worker that is forked has no network of its own
/// (`docs/bypass.md`), so the one process serves.
fn nginx_files() -> Result<Vec<String>, String> {
    let folder = format!("{OUTPUT}/kvm-nginx");
    let configuration = "daemon off;\nmaster_process off;\nerror_log stderr;\npid /run/nginx.pid;\n\
        events { worker_connections 512; }\n\
        http { access_log off; keepalive_requests 1000000000;\nserver { listen 80; root /site; } }\n";
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(format!("{folder}/index.html"), "s".repeat(1024)))
        .and_then(|()| fs::write(format!("{OUTPUT}/kvm-nginx.conf"), configuration))
        .map_err(|error| format!("{folder}: {error}"))?;
    Ok(vec![
        format!("{folder}:/site"),
        format!("{OUTPUT}/kvm-nginx.conf:/nginx.conf"),
    ])
}
