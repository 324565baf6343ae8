//! Debian's databases on a volume: whatever they have acknowledged is there after their machine was killed, and
//! e2fsck finds nothing.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup};
use crate::postgres::{bench, bench_command};
use crate::redis;
use crate::resp::Redis;
use crate::status::expect_status;
use crate::userland::FOLDERS;
use crate::volumes::Volume;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis has each key that it acknowledged before its machine was killed",
        redis_log,
    ),
    (
        "SQLite with a rollback journal has each commit of before its machine was killed",
        |setup| sqlite(setup, "delete"),
    ),
    (
        "SQLite with a write-ahead log has each commit of before its machine was killed",
        |setup| sqlite(setup, "wal"),
    ),
];

/// What takes a minute and more.
pub const TESTS_OF_SERVERS: &[Test] = &[(
    "PostgreSQL on a volume recovers what pgbench committed before its machine was killed",
    postgres,
)];

/// The same with another server, which takes minutes.
pub const TESTS_OF_MARIADB: &[Test] = &[(
    "MariaDB on a volume recovers what was committed before its machine was killed",
    mariadb,
)];

/// A server starts, and makes its files, on a busy host.
const PATIENCE: Duration = Duration::from_secs(240);

const CLIENTS: usize = 4;
/// Acknowledged keys after which the machine is killed.
const ENOUGH_KEYS: usize = 200;

fn redis_log(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("redis", "256M")?;
    let flag = volume.flag();
    let args = [
        "--dir",
        "/data",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ];
    let (mut guest, address) = redis::start(setup, &[&flag], &args)?;
    let acknowledged: Arc<[AtomicUsize; CLIENTS]> = Arc::default();
    for client in 0..CLIENTS {
        let acknowledged = acknowledged.clone();
        // It goes when its connection breaks, which takes long.
        thread::spawn(move || set_until_killed(address, client, &acknowledged[client]));
    }
    let enough = || sum(acknowledged.as_slice()) >= ENOUGH_KEYS;
    wait_for(enough, "Redis acknowledges no keys").and_then(|()| guest.kill())?;
    volume.settle();
    let (guest, address) = redis::start(setup, &[&flag], &args)?;
    let mut redis = Redis::connect(address)?;
    let is_loaded = || redis.call(&["PING"]).as_deref() == Ok("PONG");
    wait_for(is_loaded, "Redis does not load its log")?;
    for (client, count) in acknowledged.iter().enumerate() {
        for number in 0..count.load(Ordering::SeqCst) {
            let value = redis.call(&["GET", &key(client, number)])?;
            if value != format!("value {number}") {
                return Err(format!("{} holds {value:?}", key(client, number)));
            }
        }
    }
    expect_status(&guest.stop()?, 0)?;
    volume.expect_clean()
}

fn key(client: usize, number: usize) -> String {
    format!("key:{client}:{number}")
}

fn sum(counts: &[AtomicUsize]) -> usize {
    counts
        .iter()
        .map(|count| count.load(Ordering::SeqCst))
        .sum()
}

/// Sets key after key; the connection breaks with the machine.
fn set_until_killed(address: SocketAddr, client: usize, acknowledged: &AtomicUsize) {
    let Ok(mut redis) = Redis::connect(address) else {
        return;
    };
    for number in 0.. {
        let set = redis.call(&["SET", &key(client, number), &format!("value {number}")]);
        if set.as_deref() != Ok("OK") {
            return;
        }
        acknowledged.store(number + 1, Ordering::SeqCst);
    }
}

fn wait_for(mut is_so: impl FnMut() -> bool, otherwise: &str) -> Result<(), String> {
    const POLL: Duration = Duration::from_millis(20);
    let tries = PATIENCE.as_millis() / POLL.as_millis();
    for _ in 0..tries {
        if is_so() {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    Err(otherwise.into())
}

/// Commits rows, and says so after each. With less than `extra` SQLite does not wait until the name of a rollback
/// journal is gone, which is its commit.
const COMMITS: &str = "\
import sqlite3, sys
db = sqlite3.connect('/data/db', isolation_level=None)
print(db.execute('pragma journal_mode=' + sys.argv[1]).fetchone()[0])
db.execute('pragma synchronous=extra')
db.execute('create table t(n integer primary key, b blob)')
n = 0
while True:
    n += 1
    db.execute('begin')
    db.execute('insert into t values(?, randomblob(3000))', (2 * n - 1,))
    db.execute('insert into t values(?, randomblob(20))', (2 * n,))
    db.execute('commit')
    print('committed-%d-' % n, flush=True)
";
/// Whether all of them are there, and none by half.
const CHECK: &str = "\
import sqlite3, sys
db = sqlite3.connect('/data/db')
assert db.execute('pragma integrity_check').fetchall() == [('ok',)]
rows = db.execute('select n from t order by n').fetchall()
assert [n for (n,) in rows] == list(range(1, len(rows) + 1)), rows
assert len(rows) % 2 == 0 and len(rows) >= 2 * int(sys.argv[1]), len(rows)
";

fn sqlite(setup: &Setup, journal: &str) -> Result<(), String> {
    let volume = Volume::new("sqlite", "64M")?;
    let flag = volume.flag();
    let python = |script, word| {
        let program = ["/usr/bin/python3", "-c", script, word];
        setup.start(&[&["--net", "none", &flag], FOLDERS, &program].concat())
    };
    let mut guest = python(COMMITS, journal)?;
    guest.expect("committed-25-", BOOT_PATIENCE)?;
    guest.kill()?;
    let last = last_number(&guest, "committed-");
    volume.settle();
    // The host replays the journal, and the machine finds a file system that was unmounted.
    volume.expect_sound()?;
    let end = python(CHECK, &last.to_string())?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    volume.expect_clean()
}

/// The largest number that the machine wrote after `word` and before a hyphen.
fn last_number(guest: &Guest, word: &str) -> u32 {
    let said = guest.console();
    let numbers = said.lines().filter_map(|line| {
        let number = line.trim().strip_prefix(word)?.strip_suffix('-')?;
        number.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Makes the database once, as Debian's `nobody`, whom the server lets in from everywhere.
const POSTGRES: &str = "\
set -e
programs=$(echo /usr/lib/postgresql/*/bin)
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
chown 65534:65534 /data
if ! test -e /data/PG_VERSION; then
  $user $programs/initdb -D /data -U sietch -A trust
  echo 'host all all 0.0.0.0/0 trust' >> /data/pg_hba.conf
  sync /data/pg_hba.conf
fi
exec $user $programs/postgres -D /data -h '*' -k /tmp
";
/// What pgbench commits before the machine is killed under it.
const COMMITTED: &[&str] = &["--client", "8", "--transactions", "15"];
const COMMITTED_COUNT: u64 = 8 * 15;

fn postgres(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("postgres", "512M")?;
    let flag = volume.flag();
    let machine = ["--memory", "1G", &flag];
    let args = [&machine, FOLDERS, &["/bin/sh", "-c", POSTGRES]].concat();
    let (mut guest, address) = setup.serve(5432, &args)?;
    guest.expect("ready to accept connections", PATIENCE)?;
    bench(address, &["--initialize", "--quiet"])
        .and_then(|_| bench(address, COMMITTED))
        .map_err(|why| guest.explain(&why))?;
    let mut load = bench_command(address, &["--client", "8", "--time", "600", "--no-vacuum"])?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("pgbench: {error}"))?;
    let count = || sql(address, "select count(*) from pgbench_history");
    let more = || count().is_ok_and(|count| count.parse().unwrap_or(0) > COMMITTED_COUNT + 40);
    let killed = wait_for(more, "pgbench commits nothing").and_then(|()| guest.kill());
    // It would wait long for a machine that is gone.
    let _ = load.kill().and_then(|()| load.wait());
    killed?;
    volume.settle();
    let (guest, address) = setup.serve(5432, &args)?;
    guest.expect("ready to accept connections", PATIENCE)?;
    let sums = "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)
        and (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)
        and (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history)";
    let balances = sql(address, sums)?;
    let count = sql(address, "select count(*) from pgbench_history")?;
    let is_there = count.parse().unwrap_or(0) > COMMITTED_COUNT + 40;
    match balances == "t" && is_there {
        true => expect_status(&guest.stop()?, 0)?,
        false => return Err(guest.explain(&format!("has {count} rows, sums: {balances}"))),
    }
    volume.expect_clean()
}

/// Asks the server; its answer of one field.
fn sql(address: SocketAddr, query: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args(["--host", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(["--username", "sietch", "--no-align", "--tuples-only"])
        .args(["--command", query, "postgres"])
        .output()
        .map_err(|error| format!("psql: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        false => Err(format!(
            "psql: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// The server, and how it is asked from inside of the machine.
const MARIADB: &str = "\
set -e
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
chown 65534:65534 /data
test -d /data/mysql || $user mariadb-install-db --no-defaults --datadir=/data --skip-test-db \
    --auth-root-authentication-method=normal --skip-name-resolve > /dev/null
$user mariadbd --no-defaults --datadir=/data --socket=/tmp/maria.sock \
    --pid-file=/tmp/maria.pid --skip-name-resolve --bind-address=127.0.0.1 &
server=$!
client='--no-defaults --user=root --host=127.0.0.1'
until mariadb-admin $client --silent ping; do sleep 0.2; done
";
/// The client says each row's number when it was committed.
const MARIADB_COMMITS: &str = "
mariadb $client --execute 'CREATE DATABASE d; CREATE TABLE d.t (n INT PRIMARY KEY, b TEXT) ENGINE=InnoDB'
for n in $(seq 1000000); do
  echo \"INSERT INTO d.t VALUES ($n, REPEAT('x', 2000)); SELECT 'committed-$n-';\"
done | mariadb $client --unbuffered --skip-column-names
";

fn mariadb(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("mariadb", "1G")?;
    let flag = volume.flag();
    let start = |script: &str| {
        let script = format!("{MARIADB}{script}");
        let machine = ["--net", "none", "--memory", "1G", &flag];
        setup.start(&[&machine, FOLDERS, &["/bin/sh", "-c", &script]].concat())
    };
    let mut guest = start(MARIADB_COMMITS)?;
    guest.expect("committed-100-", PATIENCE)?;
    guest.kill()?;
    let last = last_number(&guest, "committed-");
    volume.settle();
    let check = format!(
        "mariadb $client --skip-column-names --execute 'SELECT MIN(n) = 1 AND MAX(n) = COUNT(*) AND COUNT(*) >= {last} FROM d.t; CHECK TABLE d.t'
mariadb-admin $client shutdown
wait $server"
    );
    let end = start(&check)?.wait(PATIENCE)?;
    let is_right = end.console.lines().any(|line| line.trim() == "1")
        && end.console.contains("check\tstatus\tOK");
    match (end.status, is_right) {
        (0, true) => volume.expect_clean(),
        (status, _) => Err(format!("status {status}, {last} rows: {}", end.console)),
    }
}
