//! MariaDB as a user of its own, on a folder of the host.

use std::time::Duration;

use crate::Test;
use crate::guest::Setup;
use crate::userland::{self, FOLDERS};

/// The tests.
pub const TESTS: &[Test] = &[(
    "MariaDB makes its files on a volume as its own user and serves mariadb-slap",
    slap,
)];

/// The machine makes a database of its own, and hosts are busy.
const PATIENCE: Duration = Duration::from_secs(240);
/// Whoever is not asked for a password by this server may do everything there: it is reached
/// from inside of the machine only. A greeting comes first from this server, and passt of
/// Debian 12 waits for the client's word; so the clients run inside, too.
const SCRIPT: &str = "\
set -e
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
mkdir -p /data/base
chown 65534:65534 /data/base
$user mariadb-install-db --no-defaults --datadir=/data/base --skip-test-db \
    --auth-root-authentication-method=normal --skip-name-resolve > /dev/null
$user mariadbd --no-defaults --datadir=/data/base --socket=/tmp/maria.sock \
    --pid-file=/tmp/maria.pid --skip-name-resolve --bind-address=127.0.0.1 &
server=$!
client='--no-defaults --user=root --host=127.0.0.1'
until mariadb-admin $client --silent ping; do sleep 0.2; done
mariadb-slap $client --concurrency=8 --number-of-queries=400 --auto-generate-sql \
    --auto-generate-sql-load-type=mixed --auto-generate-sql-add-autoincrement --engine=innodb
mariadb $client --execute 'CREATE DATABASE d; USE d; CREATE TABLE d.t (n INT PRIMARY KEY) ENGINE=InnoDB;
    INSERT INTO d.t SELECT seq FROM seq_1_to_10000; SELECT COUNT(*), SUM(n) FROM d.t; CHECK TABLE d.t'
mariadb-admin $client shutdown
wait $server
";
/// The rows and their sum, as the client shows them.
const ROWS: &str = "10000\t50005000";

fn slap(setup: &Setup) -> Result<(), String> {
    let volume = userland::data("mariadb")?;
    let machine = ["--memory", "1G", "--volume", &volume];
    let args = [&machine, FOLDERS, &["/bin/sh", "-c", SCRIPT]].concat();
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let is_right = ["Average number of seconds", ROWS, "check\tstatus\tOK"]
        .iter()
        .all(|words| end.console.contains(words));
    match (end.status, is_right) {
        (0, true) => Ok(()),
        (status, _) => Err(format!("status {status}: {}", end.console)),
    }
}
