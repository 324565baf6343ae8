//! etcd: a Go server with a write-ahead log that it makes durable.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::Test;
use crate::clients::together;
use crate::guest::Setup;
use crate::http::HELLO;

/// The tests.
pub const TESTS: &[Test] = &[("etcd keeps the values of many clients", many_clients)];

const CLIENTS: usize = 4;
const ROUNDS: usize = 5;

fn many_clients(setup: &Setup) -> Result<(), String> {
    let args = [
        "--memory",
        "512M",
        "etcd",
        "--data-dir",
        "/tmp/etcd",
        "--listen-client-urls",
        "http://0.0.0.0:2379",
        "--advertise-client-urls",
        "http://127.0.0.1:2379",
    ];
    let (guest, address) = setup.serve(2379, &args)?;
    guest.expect_answer(address, HELLO)?;
    guest.expect("ready to serve client requests", Duration::from_secs(60))?;
    together(CLIENTS, |number| client(address, number)).map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}

/// Stores values and reads each back.
pub fn client(address: SocketAddr, number: usize) -> Result<(), String> {
    for round in 0..ROUNDS {
        let (key, value) = (format!("key-{number}"), format!("value {number}.{round}"));
        etcdctl(address, &["put", &key, &value])?;
        let answer = etcdctl(address, &["get", "--print-value-only", &key])?;
        if answer.trim_end() != value {
            return Err(format!("{key} is {answer:?} and not {value:?}"));
        }
    }
    Ok(())
}

fn etcdctl(address: SocketAddr, args: &[&str]) -> Result<String, String> {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--command-timeout=30s", "--endpoints", &address.to_string()])
        .args(args)
        .output()
        .map_err(|error| format!("etcdctl: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "etcdctl {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
