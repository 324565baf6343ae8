//! Debian's PostgreSQL, its files made on the host, and pgbench there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench_pair::Guest;

use crate::shell::Shell;

const PORT: u16 = 5432;
/// How many clients pgbench has.
pub const CLIENTS: u32 = 8;
/// Debian's `nobody`: the server refuses to be root.
const USER: [&str; 4] = [
    "/usr/bin/setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];
/// What the server shall not need: time zones, and other processes' shared memory.
const SETTINGS: &str = "timezone='GMT'\nlog_timezone='GMT'\ndynamic_shared_memory_type='mmap'\njit=off\nlisten_addresses='*'\nunix_socket_directories='/tmp'\n";

/// Where its programs are; Debian has a folder for each version.
fn folder() -> Result<PathBuf, String> {
    let missing = || "PostgreSQL is missing: `make setup` installs it.".to_string();
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|_| missing())?;
    let mut folders = versions.flatten().map(|version| version.path());
    let found = folders.find(|folder| folder.join("bin/postgres").is_file());
    found.ok_or_else(missing)
}

/// For `--add`.
pub fn additions() -> Result<Vec<String>, String> {
    let folder = folder()?;
    let version = folder.file_name().unwrap_or_default().to_string_lossy();
    let places = [
        folder.join("bin/postgres").display().to_string(),
        folder.join("lib/plpgsql.so").display().to_string(),
        format!("/usr/share/postgresql/{version}"),
        "/usr/bin/setpriv".into(),
    ];
    Ok(places.map(|place| format!("{place}:{place}")).to_vec())
}

/// A folder with `pg`, the server's files with pgbench's tables, made anew.
pub fn files() -> Result<PathBuf, String> {
    let text = |error: std::io::Error| format!("PostgreSQL's files: {error}");
    let tree = std::env::temp_dir().join(format!("bench-storage-{}", std::process::id()));
    let data = tree.join("pg");
    fs::create_dir_all(&data).map_err(text)?;
    fs::set_permissions(&tree, fs::Permissions::from_mode(0o755)).map_err(text)?;
    std::os::unix::fs::chown(&data, Some(65534), Some(65534)).map_err(text)?;
    let programs = folder()?.join("bin");
    run(as_user(&programs.join("initdb"))
        .args(["-U", "sietch", "-A", "trust", "--no-locale", "-E", "UTF8"])
        .args(["--no-sync", "-D"])
        .arg(&data))?;
    let append = |name: &str, more: &str| {
        let path = data.join(name);
        let before = fs::read_to_string(&path)?;
        fs::write(&path, before + more)
    };
    append("pg_hba.conf", "host all all 0.0.0.0/0 trust\n").map_err(text)?;
    append("postgresql.conf", SETTINGS).map_err(text)?;
    let mut server = as_user(&programs.join("postgres"))
        .args(["-D", &data.to_string_lossy(), "-c", "listen_addresses="])
        .args(["-c", "fsync=off"])
        .spawn()
        .map_err(text)?;
    let made = make_tables(&programs);
    end(&mut server);
    made.map(|()| tree)
}

/// Once the server listens.
fn make_tables(programs: &Path) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut pgbench = Command::new(programs.join("pgbench"));
        let made = run(pgbench
            .args(["-h", "/tmp", "-U", "sietch", "-i", "-q"])
            .arg("postgres"));
        if made.is_ok() || Instant::now() > deadline {
            return made;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// SIGINT: all is brought to the disk.
fn end(server: &mut Child) {
    let _ = Command::new("kill")
        .args(["-INT", &server.id().to_string()])
        .status();
    let _ = server.wait();
}

fn as_user(program: &Path) -> Command {
    let [first, rest @ ..] = USER;
    let mut command = Command::new(first);
    command.args(rest).arg(program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    }
}

/// Starts the server in the guest.
pub fn start(shell: &mut Shell) -> Result<(), String> {
    let postgres = folder()?.join("bin/postgres");
    shell.run(&format!(
        "mkdir -p /tmp; busybox chmod 1777 /tmp; {} {} -D /mnt/pg >/tmp/pg.log 2>&1 </dev/null &",
        USER.join(" "),
        postgres.display()
    ))?;
    // Its port answers before it does.
    let ready = shell.run(
        "for turn in $(busybox seq 300); do busybox grep -q 'ready to accept' /tmp/pg.log && exit; busybox sleep 0.1; done; exit 1",
    );
    match ready {
        Ok(_) => Ok(()),
        Err(_) => Err(shell.run("busybox tail -n 1 /tmp/pg.log")?),
    }
}

/// Ends it.
pub fn stop(shell: &mut Shell) -> Result<(), String> {
    shell
        .run("busybox kill -INT $(busybox head -n 1 /mnt/pg/postmaster.pid); while [ -e /mnt/pg/postmaster.pid ]; do busybox sleep 0.1; done")
        .map(drop)
}

/// Transactions a second for so many seconds.
pub fn rate(seconds: u32) -> Result<f64, String> {
    let output = Command::new(folder()?.join("bin/pgbench"))
        .args(["-h", &Guest::address(PORT).ip().to_string()])
        .args(["-U", "sietch", "-n", "-c", &CLIENTS.to_string()])
        .args(["-T", &seconds.to_string(), "postgres"])
        .output()
        .map_err(|error| format!("pgbench: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    tps(&said).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        format!("pgbench says {} {}", said.trim(), why.trim())
    })
}

fn tps(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_without_the_connections() {
        let said = "latency average = 1 ms\ntps = 81.5 (without initial connection time)\n";
        assert_eq!(tps(said), Some(81.5));
    }
}
