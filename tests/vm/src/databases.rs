//! Debian's databases on a volume: whatever they have acknowledged is there after their machine was killed, and
//! e2fsck finds nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup};
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
