//! PostgreSQL as a user of its own, on a folder of the host.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Test;
use crate::guest::Setup;
use crate::userland::{self, FOLDERS};

/// The tests.
pub const TESTS: &[Test] = &[(
    "PostgreSQL makes its files on a volume as its own user and serves pgbench",
    pgbench,
)];

const PATIENCE: Duration = Duration::from_secs(120);
/// Makes the database as Debian's `nobody`, whom the server lets in from everywhere.
const SCRIPT: &str = "\
set -e
programs=$(echo /usr/lib/postgresql/*/bin)
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
mkdir -p /data/base
chown 65534:65534 /data/base
$user $programs/initdb -D /data/base -U sietch -A trust --no-sync
echo 'host all all 0.0.0.0/0 trust' >> /data/base/pg_hba.conf
exec $user $programs/postgres -D /data/base -h '*' -k /tmp
";
const CLIENTS: &str = "8";
const TRANSACTIONS: &str = "25";

fn pgbench(setup: &Setup) -> Result<(), String> {
    let volume = userland::data("postgres")?;
    let machine = ["--memory", "1G", "--volume", &volume];
    let args = [&machine, FOLDERS, &["/bin/sh", "-c", SCRIPT]].concat();
    let (guest, address) = setup.serve(5432, &args)?;
    guest.expect("ready to accept connections", PATIENCE)?;
    let tables = bench(address, &["--initialize", "--quiet"]);
    let load = ["--client", CLIENTS, "--transactions", TRANSACTIONS];
    let said = tables
        .and_then(|_| bench(address, &load))
        .map_err(|why| guest.explain(&why))?;
    if !said.contains("number of failed transactions: 0") {
        return Err(format!("pgbench: {}", said.trim()));
    }
    guest.stop().map(drop)
}

/// The command that runs pgbench against the server.
pub fn bench_command(address: SocketAddr, args: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(program()?);
    command
        .args(["--host", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(["--username", "sietch"])
        .args(args)
        .arg("postgres");
    Ok(command)
}

/// Runs pgbench against the server; what it says.
pub fn bench(address: SocketAddr, args: &[&str]) -> Result<String, String> {
    let output = bench_command(address, args)?
        .output()
        .map_err(|error| format!("pgbench: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "failed pgbench: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Debian has a folder for each version.
fn program() -> Result<PathBuf, String> {
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|error| error.to_string())?;
    let mut programs = versions
        .flatten()
        .map(|version| version.path().join("bin/pgbench"));
    let found = programs.find(|program| program.is_file());
    found.ok_or_else(|| "pgbench is missing".into())
}
