//! Programs whose append-only files `libsietch.so` puts on a log (`docs/vsa.md`).

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::clients::together;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, write_file};
use crate::redis;
use crate::resp::Redis;
use crate::status::expect_status;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis with its append-only file on a log has every acknowledged SET after its machine is killed",
        redis_outlives_its_machine,
    ),
    (
        "Redis with its append-only file in an area has every acknowledged SET after its machine is killed",
        redis_in_an_area,
    ),
    (
        "a server on the log's map has every acknowledged SET after its machine is killed, by sockets and on a link of its own",
        server_outlives_its_machine,
    ),
    (
        "threads that sync files on a log at once have what they were promised",
        threads_share_a_log,
    ),
    (
        "SQLite with its journals on a log keeps what was committed",
        sqlite_commits,
    ),
];

const AREA_BYTES: u64 = 16 << 20;
const AOF: &str = "/data/appendonlydir/*.incr.aof=/dev/vda";
const CLIENTS: usize = 4;
const ROUNDS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for plain files, and a disk for the log.
struct Place {
    volume: String,
    disk: String,
    /// Goes with it.
    _folder: Folder,
}

impl Place {
    fn new(name: &str) -> Result<Self, String> {
        // What `--log` puts before the program.
        build::library("sietch")?;
        let folder = Folder::new(name)?;
        let disk = folder.0.join("area.img");
        let made = File::create(&disk).and_then(|disk| disk.set_len(AREA_BYTES));
        made.map_err(|error| error.to_string())?;
        Ok(Self {
            volume: format!("{}:/data", folder.0.display()),
            disk: disk.display().to_string(),
            _folder: folder,
        })
    }

    fn flags<'a>(&'a self, log: &'a str) -> Vec<&'a str> {
        vec!["-v", &self.volume, "--disk", &self.disk, "--log", log]
    }

    fn redis(&self, setup: &Setup) -> Result<(Guest, SocketAddr), String> {
        let args = ["--dir", "/data", "--appendonly", "yes", "--save", ""];
        let args = [&args[..], &["--appendfsync", "always"]].concat();
        let (guest, address) = redis::start(setup, &self.flags(AOF), &args)?;
        Redis::connect(address)?.wait_for_info("loading", "0")?;
        Ok((guest, address))
    }
}

/// Clients set keys of their own, all acknowledged.
fn set_all(address: SocketAddr, era: &str) -> Result<(), String> {
    together(CLIENTS, |client| {
        let mut redis = Redis::connect(address)?;
        for round in 0..ROUNDS {
            let key = format!("{era}:{client}:{round}");
            redis.call(&["SET", &key, &format!("value of {key}")])?;
        }
        Ok(())
    })
}

fn find_all(address: SocketAddr, era: &str) -> Result<(), String> {
    let mut redis = Redis::connect(address)?;
    for client in 0..CLIENTS {
        for round in 0..ROUNDS {
            let key = format!("{era}:{client}:{round}");
            let value = redis.call(&["GET", &key])?;
            if value != format!("value of {key}") {
                return Err(format!("{key} is {value:?} afterwards"));
            }
        }
    }
    Ok(())
}

/// Nothing was refused.
fn expect_silence(guest: &Guest) -> Result<(), String> {
    match guest.console().contains("libsietch:") {
        true => Err(guest.explain("has files refused")),
        false => Ok(()),
    }
}

fn redis_outlives_its_machine(setup: &Setup) -> Result<(), String> {
    let place = Place::new("logged-redis")?;
    let (mut guest, address) = place.redis(setup)?;
    set_all(address, "first")?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["BGREWRITEAOF"])?;
    set_all(address, "second")?;
    redis.wait_for_info("aof_rewrite_in_progress", "0")?;
    redis.wait_for_info("aof_last_bgrewrite_status", "ok")?;
    set_all(address, "third")?;
    expect_silence(&guest)?;
    guest.kill()?;

    let (guest, address) = place.redis(setup)?;
    for era in ["first", "second", "third"] {
        find_all(address, era)?;
    }
    set_all(address, "fourth")?;
    expect_silence(&guest)?;
    expect_status(&guest.stop()?, 0)?;
    checks(setup, &place)
}

/// Where a server is on a link of its own.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);

/// `durable_kv`, whose frames are its own, with the log on a disk of the kernel's.
fn server_on_link(setup: &Setup, place: &Place) -> Result<(Guest, SocketAddr), String> {
    let server = build::example("sietch-io", "durable_kv")?;
    let additions = [
        format!("{}:/bin/dladm", build::tool("admin", "dladm")?.display()),
        format!("{}:/bin/durable_kv", server.display()),
    ];
    let script = format!(
        "dladm create-vnic -t -l eth0 vnic61 && exec durable_kv 6379 /dev/vda vnic61 {OWN_ADDRESS}/24"
    );
    let mut args = vec!["--disk", &place.disk];
    args.extend(additions.iter().flat_map(|addition| ["--add", addition]));
    args.extend(["/bin/bash", "-c", &script]);
    let (guest, _) = setup.serve(6379, &args)?;
    let address = (OWN_ADDRESS, 6379).into();
    guest.expect_answer(address, b"*1\r\n$4\r\nPING\r\n")?;
    Ok((guest, address))
}

/// The example of `user/libos`, over the kernel's sockets, and then on a link of its own where the host reaches one.
fn server_outlives_its_machine(setup: &Setup) -> Result<(), String> {
    let place = Place::new("logged-server")?;
    let server = build::example("sietch-io", "durable_kv")?;
    let server = server.to_string_lossy();
    let start = || {
        let args = ["--disk", &place.disk, &server, "6379", "/dev/vda"];
        let (guest, address) = setup.serve(6379, &args)?;
        guest.expect_answer(address, b"*1\r\n$4\r\nPING\r\n")?;
        Ok::<_, String>((guest, address))
    };
    let (mut guest, address) = start()?;
    set_all(address, "first")?;
    let mut client = Redis::connect(address)?;
    for number in 0..20 {
        client.call(&["SET", "again", &number.to_string()])?;
    }
    client.call(&["DEL", "first:0:0"])?;
    guest.kill()?;

    let (mut guest, address) = match setup.has_tap() {
        true => server_on_link(setup, &place)?,
        false => start()?,
    };
    let mut client = Redis::connect(address)?;
    let answers = ["GET again", "DBSIZE", "DEL first:0:0"].map(|words| {
        let words: Vec<&str> = words.split(' ').collect();
        client.call(&words)
    });
    let keys = (CLIENTS * ROUNDS).to_string();
    if answers != [Ok("19".into()), Ok(keys), Ok("0".into())] {
        return Err(format!("the server says {answers:?} afterwards"));
    }
    client.call(&["SET", "first:0:0", "value of first:0:0"])?;
    find_all(address, "first")?;
    set_all(address, "second")?;
    guest.kill()?;

    let (mut guest, address) = start()?;
    for era in ["first", "second"] {
        find_all(address, era)?;
    }
    guest.kill()
}

/// The same by the ring of an area of the disk (`/dev/vsa`), which the first machine makes.
fn redis_in_an_area(setup: &Setup) -> Result<(), String> {
    let place = Place::new("logged-area")?;
    let additions = [
        format!("{}:/bin/vsaadm", build::tool("admin", "vsaadm")?.display()),
        format!("{}:/lib/libsietch.so", build::library("sietch")?.display()),
        "/usr/bin/redis-server:/bin/redis-server".to_string(),
    ];
    let script = "set -e; [ -e /dev/vsa/log ] || { vsaadm format vda; vsaadm create vda log 8M; }
        export LD_PRELOAD=/lib/libsietch.so SIETCH_LOG='/data/appendonlydir/*.incr.aof=/dev/vsa/log'
        exec redis-server --protected-mode no --dir /data --appendonly yes --appendfsync always --save ''";
    let start = || {
        let mut args = vec!["-v", &place.volume, "--disk", &place.disk];
        args.extend(additions.iter().flat_map(|addition| ["--add", addition]));
        args.extend(["/bin/bash", "-c", script]);
        let (guest, address) = setup.serve(6379, &args)?;
        guest.expect_answer(address, b"PING\r\n")?;
        Redis::connect(address)?.wait_for_info("loading", "0")?;
        Ok::<_, String>((guest, address))
    };
    let (mut guest, address) = start()?;
    set_all(address, "first")?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["BGREWRITEAOF"])?;
    set_all(address, "second")?;
    redis.wait_for_info("aof_last_bgrewrite_status", "ok")?;
    expect_silence(&guest)?;
    guest.kill()?;

    let (mut guest, address) = start()?;
    for era in ["first", "second"] {
        find_all(address, era)?;
    }
    expect_silence(&guest)?;
    guest.kill()
}

/// The machine is killed when they are done: nothing but their syncs has brought anything out.
fn threads_share_a_log(setup: &Setup) -> Result<(), String> {
    let place = Place::new("logged-threads")?;
    let program = build::c(Path::new("tests/harness/appenders.c"))?;
    let add = format!("{}:/appenders", program.display());
    let start = |script| {
        let mut args = vec!["--net", "none", "--add", &add];
        args.extend(place.flags("/data/file-*=/dev/vda"));
        args.extend(["/bin/bash", "-c", script]);
        setup.start(&args)
    };
    let mut guest = start("/appenders /data/file 8 60 && echo all are synced; sleep 60")?;
    guest.expect("all are synced", PATIENCE)?;
    expect_silence(&guest)?;
    guest.kill()?;
    let end = start("/appenders /data/file 8 60 check")?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)
}

/// Redis' own tool reads the files by their names.
fn checks(setup: &Setup, place: &Place) -> Result<(), String> {
    let mut args = vec!["--net", "none"];
    args.extend(place.flags(AOF));
    args.extend([
        "redis-check-aof",
        "/data/appendonlydir/appendonly.aof.manifest",
    ]);
    let end = setup.start(&args)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("All AOF files and manifest are valid") {
        true => Ok(()),
        false => Err(format!("redis-check-aof says {}", end.console)),
    }
}

/// Both journals, and again in the next machine.
fn sqlite_commits(setup: &Setup) -> Result<(), String> {
    let place = Place::new("logged-sqlite")?;
    for (journal, log) in [
        ("delete", "/data/*-journal=/dev/vda"),
        ("persist", "/data/*-journal=/dev/vda"),
        ("wal", "/tmp/*-wal=/dev/vda"),
    ] {
        // A shared memory file is mapped, which a volume of the host is not made for.
        let folder = if journal == "wal" { "/tmp" } else { "/data" };
        let mut script = format!("pragma journal_mode={journal};\npragma synchronous=full;\n");
        script += "create table if not exists t(a integer primary key, b text);\n";
        for row in 0..40 {
            script += &format!("insert into t(b) values('row {row} with {journal}');\n");
        }
        script += "begin; update t set b = b || '!'; rollback;\n";
        script +=
            "pragma integrity_check;\nselect 'rows ' || count(*) from t where b not like '%!';\n";
        let file = write_file(&format!("logged-{journal}.sql"), script)?;
        let addition = format!("{file}:/script.sql");
        let database = format!("{folder}/{journal}.db");
        let mut args = vec!["--net", "none", "--add", &addition];
        args.extend(place.flags(log));
        args.extend(["sqlite3", &database, ".read /script.sql"]);
        let end = setup.start(&args)?.wait(PATIENCE)?;
        expect_status(&end, 0)?;
        let is_right = end.console.contains("ok") && end.console.contains("rows 40");
        if !is_right || end.console.contains("libsietch:") {
            return Err(format!("with {journal} SQLite says {}", end.console));
        }
    }
    Ok(())
}
