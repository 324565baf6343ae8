//! PostgreSQL's data directory: made on the host, recovered on the host.
//!
//! Clients in the machine do what pgbench does, and say after each commit that it was acknowledged: the
//! mark `pg3 12` is the thirteenth of client 3. Debian's server recovers what a cut has left, in
//! single-user mode: no socket, one process. It refuses to run as root, so it runs as `nobody` there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::image::Tree;

/// Clients that commit at once.
pub const CLIENTS: usize = 8;
const NOBODY: u32 = 65534;
/// Small, so that the record of its writes is.
const SETTINGS: &str = "
shared_buffers = 1MB
wal_buffers = 64kB
min_wal_size = 2MB
max_wal_size = 4MB
max_connections = 20
max_wal_senders = 0
wal_level = minimal
autovacuum = off
listen_addresses = ''
";
/// One statement a line, as single-user mode wants them.
const SCHEMA: &str = "\
create extension amcheck
create table accounts (id int primary key, balance int)
create table tellers (id int primary key, balance int)
create table branches (id int primary key, balance int)
create table history (client int, n int, delta int, primary key (client, n))
insert into accounts select id, 0 from generate_series(0, 99) id
insert into tellers select id, 0 from generate_series(0, 7) id
insert into branches select id, 0 from generate_series(0, 1) id
";
const QUESTIONS: &str = "\
select 'sums ' || string_agg(distinct sum::text, ' ') from (select coalesce(sum(balance), 0) sum from accounts \
union all select sum(balance) from tellers union all select sum(balance) from branches \
union all select coalesce(sum(delta), 0) from history) s
select 'client ' || client || ' ' || max(n) || ' ' || count(*) from history group by client
select 'indices ' || string_agg(bt_index_check(c.oid)::text, '') from pg_class c join pg_am a on a.oid = c.relam \
where a.amname = 'btree' and c.relkind = 'i'
";

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// One of the server's programs, as a user that it runs for.
fn program(name: &str) -> Result<Command, String> {
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|error| error.to_string())?;
    let newest = versions.flatten().map(|entry| entry.path()).max();
    let path = newest.map(|version| version.join("bin").join(name));
    let mut command = Command::new(path.ok_or("there is no PostgreSQL")?);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command)
}

fn give_away(path: &Path) -> Result<(), String> {
    match is_root() {
        true => chown(path, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string()),
        false => Ok(()),
    }
}

fn run(mut command: Command, input: &str) -> Result<String, String> {
    let command = command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        let written = stdin.write_all(input.as_bytes());
        written.map_err(|error| error.to_string())?;
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let is_wrong = |line: &str| {
        ["ERROR", "FATAL", "PANIC"]
            .iter()
            .any(|word| line.contains(word))
    };
    match output.status.success() && !complaints.lines().any(is_wrong) {
        true => Ok(said),
        false => Err(format!("{said}{complaints}")),
    }
}

fn single_user(data: &Path, statements: &str) -> Result<String, String> {
    let mut command = program("postgres")?;
    command
        .args(["--single", "-F", "-D"])
        .arg(data)
        .arg("postgres");
    run(command, statements)
}

/// Makes a data directory in `folder`.
pub fn make(folder: &Path) -> Result<(), String> {
    give_away(folder)?;
    let data = folder.join("data");
    let mut initdb = program("initdb")?;
    initdb.args([
        "-U",
        "sietch",
        "-A",
        "trust",
        "-k",
        "-N",
        "--wal-segsize=1",
        "-D",
    ]);
    initdb.arg(&data);
    run(initdb, "")?;
    let file = data.join("postgresql.auto.conf");
    fs::write(file, SETTINGS).map_err(|error| error.to_string())?;
    single_user(&data, SCHEMA).map(drop)
}

/// Whether the server recovers the directory that is left, with all that was acknowledged.
pub fn check(tree: &Tree, marks: &[&str]) -> Result<(), String> {
    let folder = crate::temporary("postgres");
    let checked = unpack(tree, &folder).and_then(|()| {
        let said = single_user(&folder.join("data"), QUESTIONS)?;
        check_answers(&said, marks)?;
        let mut checksums = program("pg_checksums")?;
        checksums.args(["--check", "-D"]).arg(folder.join("data"));
        run(checksums, "").map(drop)
    });
    let _ = fs::remove_dir_all(&folder);
    checked.map_err(|error| format!("PostgreSQL: {error}"))
}

fn unpack(tree: &Tree, folder: &Path) -> Result<(), String> {
    let put = |path: &PathBuf, file: Option<&[u8]>| {
        match file {
            None => fs::create_dir(path)?,
            Some(bytes) => fs::write(path, bytes)?,
        }
        let mode = if file.is_some() { 0o600 } else { 0o700 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    let root = (folder.to_path_buf(), None);
    // A directory comes before what is in it.
    let files = tree.files.iter().map(|(path, file)| {
        let bytes = (!file.is_directory).then_some(file.bytes.as_slice());
        (folder.join(path), bytes)
    });
    for (path, bytes) in [root].into_iter().chain(files) {
        put(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        give_away(&path)?;
    }
    Ok(())
}

/// Single-user mode prints a field as `name = "value"`.
fn check_answers(said: &str, marks: &[&str]) -> Result<(), String> {
    let values = said.split(" = \"").skip(1);
    let values: Vec<&str> = values.filter_map(|rest| rest.split('"').next()).collect();
    let wrong = |what: &str| Err(format!("{what}: {values:?}"));
    let sums = values.iter().find_map(|value| value.strip_prefix("sums "));
    if sums.is_none_or(|sums| sums.contains(' ')) {
        return wrong("the sums differ");
    }
    if !values.contains(&"indices ") {
        return wrong("the indices were not looked at");
    }
    let clients = values
        .iter()
        .filter_map(|value| value.strip_prefix("client "));
    let clients: Vec<Vec<usize>> = clients
        .map(|client| {
            client
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .collect();
    for number in 0..CLIENTS {
        let found = clients
            .iter()
            .find(|client| client.first() == Some(&number));
        let (last, rows) = match found.map(Vec::as_slice) {
            Some([_, last, rows]) => (last + 1, *rows),
            _ => (0, 0),
        };
        let name = format!("pg{number} ");
        let promised = marks.iter().rev().find_map(|mark| mark.strip_prefix(&name));
        let promised = promised.and_then(|last| last.trim().parse::<usize>().ok());
        if rows != last || rows < promised.map_or(0, |last| last + 1) {
            return wrong(&format!("client {number}, where {promised:?} was promised"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_answers;

    const SAID: &str = "1: ?column? = \"sums 12\"\n1: x = \"indices \"\n1: x = \"client 0 3 4\"";

    #[test]
    fn a_lost_transaction_a_gap_and_a_wrong_sum_are_found() {
        assert_eq!(check_answers(SAID, &["pg0 2", "pg0 3"]), Ok(()));
        assert!(check_answers(SAID, &["pg0 4"]).is_err());
        assert!(check_answers(SAID, &["pg1 0"]).is_err());
        assert!(check_answers(&SAID.replace("3 4", "4 4"), &[]).is_err());
        assert!(check_answers(&SAID.replace("sums 12", "sums 12 13"), &[]).is_err());
    }
}
