//! Redis, unmodified, under redis-benchmark and with its data on a volume.

use std::net::SocketAddr;
use std::process::Command;

use crate::Test;
use crate::guest::{Guest, Setup};
use crate::resp::Redis;
use crate::status::expect_status;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis serves redis-benchmark's whole list to 50 clients",
        default_list,
    ),
    ("Redis serves a thousand clients at once", thousand_clients),
    ("Redis serves pipelined requests", pipelined),
    ("Redis serves values of 64 KiB", large_values),
    (
        "Redis saves, rewrites its log and reloads while it serves",
        persistence_commands,
    ),
    (
        "Redis finds its data on the volume in the next machine",
        data_survives,
    ),
];

const PING: &[u8] = b"PING\r\n";

/// Starts Redis and waits until it answers.
pub fn start(
    setup: &Setup,
    flags: &[&str],
    redis_args: &[&str],
) -> Result<(Guest, SocketAddr), String> {
    let mut args = flags.to_vec();
    args.extend(["redis-server", "--protected-mode", "no"]);
    args.extend(redis_args);
    let (guest, address) = setup.serve(6379, &args)?;
    guest.expect_answer(address, PING)?;
    Ok((guest, address))
}

/// Runs redis-benchmark against a machine; any error of it or of Redis is one here.
/// Returns its table of comma-separated values.
pub fn benchmark(guest: &Guest, address: SocketAddr, args: &[&str]) -> Result<String, String> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let output = Command::new("redis-benchmark")
        .args(["--csv", "-h", &host, "-p", &port])
        .args(args)
        .output();
    let output = output.map_err(|error| format!("redis-benchmark: {error}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() || said.contains("Error") || said.contains("ERR") {
        return Err(guest.explain(&format!("failed redis-benchmark: {}", said.trim())));
    }
    Ok(said)
}

fn serve_benchmark(setup: &Setup, args: &[&str]) -> Result<(), String> {
    let (guest, address) = start(setup, &[], &["--save", ""])?;
    benchmark(&guest, address, args)?;
    expect_status(&guest.stop()?, 0)
}

fn default_list(setup: &Setup) -> Result<(), String> {
    serve_benchmark(setup, &["-n", "2000", "-c", "50"])
}

fn thousand_clients(setup: &Setup) -> Result<(), String> {
    serve_benchmark(setup, &["-n", "10000", "-c", "1000", "-t", "set,get"])
}

fn pipelined(setup: &Setup) -> Result<(), String> {
    serve_benchmark(
        setup,
        &["-n", "50000", "-P", "16", "-t", "set,get,incr,lpush,zadd"],
    )
}

fn large_values(setup: &Setup) -> Result<(), String> {
    serve_benchmark(
        setup,
        &[
            "-n",
            "500",
            "-c",
            "10",
            "-d",
            "65536",
            "-t",
            "set,get,lpush",
        ],
    )
}

fn persistence_commands(setup: &Setup) -> Result<(), String> {
    let (guest, address) = start(
        setup,
        &[],
        &["--appendonly", "yes", "--enable-debug-command", "yes"],
    )?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["DEBUG", "POPULATE", "20000"])?;
    redis.call(&["BGSAVE"])?;
    benchmark(&guest, address, &["-n", "3000", "-t", "set,get"])?;
    redis.wait_for_info("rdb_bgsave_in_progress", "0")?;
    redis.wait_for_info("rdb_last_bgsave_status", "ok")?;
    redis.call(&["BGREWRITEAOF"])?;
    benchmark(&guest, address, &["-n", "3000", "-t", "set,get"])?;
    redis.wait_for_info("aof_rewrite_in_progress", "0")?;
    redis.wait_for_info("aof_last_bgrewrite_status", "ok")?;
    let before = redis.call(&["DBSIZE"])?;
    redis.call(&["DEBUG", "RELOAD"])?;
    let after = redis.call(&["DBSIZE"])?;
    if before != after {
        return Err(format!("{before} keys before the reload, {after} after"));
    }
    expect_status(&guest.stop()?, 0)
}

fn data_survives(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("redis-data")?;
    let volume = format!("{}:/data", folder.0.display());
    let flags = ["-v", volume.as_str()];
    let args = ["--dir", "/data"];
    let (guest, address) = start(setup, &flags, &args)?;
    let mut redis = Redis::connect(address)?;
    for number in 0..1000 {
        redis.call(&["SET", &format!("key:{number}"), &format!("value {number}")])?;
    }
    // The connection closes instead of a reply.
    let _ = redis.call(&["SHUTDOWN", "SAVE"]);
    expect_status(&guest.wait(crate::guest::BOOT_PATIENCE)?, 0)?;

    let (guest, address) = start(setup, &flags, &args)?;
    let mut redis = Redis::connect(address)?;
    for number in [0, 500, 999] {
        let value = redis.call(&["GET", &format!("key:{number}")])?;
        if value != format!("value {number}") {
            return Err(format!("key:{number} holds {value:?} in the next machine"));
        }
    }
    expect_status(&guest.stop()?, 0)
}
