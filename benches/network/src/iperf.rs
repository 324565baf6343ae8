//! Bulk TCP in both directions by `iperf3`, one connection.

use bench_pair::{Better, Guest, Table};
use serde_json::Value;

use crate::client;
use crate::run::Run;

const PORT: u16 = 5201;
const SECONDS: u32 = 6;
const MIB: f64 = 1_048_576.0;

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let mut guest = run.boot(&["iperf3", "-s"])?;
    guest.wait_until("serve iperf3", || transfer(1, &[]).is_ok())?;
    for (direction, flags) in [("receives", &[][..]), ("sends", &["-R"])] {
        let before_s = guest.cpu_s();
        let mut transferred = Err(String::new());
        // The server takes its time to end a transfer and to listen anew.
        guest.wait_until("serve iperf3 again", || {
            transferred = transfer(run.amount(SECONDS), flags);
            !transferred.as_ref().is_err_and(|why| is_early(why))
        })?;
        let transferred = transferred?;
        let cpu_us = (guest.cpu_s() - before_s) * 1e6 / transferred.mib;
        let rate = transferred.mib / transferred.seconds;
        let what = format!("bulk TCP, guest {direction}");
        table.add(&format!("{what}, MiB/s"), Better::More, run.system, rate);
        let name = format!("{what}: QEMU's CPU time, µs/MiB");
        table.add(&name, Better::Less, run.system, cpu_us);
    }
    Ok(())
}

/// Whether the server will serve a little later.
fn is_early(why: &str) -> bool {
    let early = ["refused", "busy", "reset by peer"];
    early.iter().any(|word| why.contains(word))
}

/// What arrived at the receiver, and in what time.
#[derive(Debug, PartialEq)]
struct Transferred {
    mib: f64,
    seconds: f64,
}

fn transfer(seconds: u32, flags: &[&str]) -> Result<Transferred, String> {
    let address = Guest::address(PORT);
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let seconds = seconds.to_string();
    let args = [
        "--json",
        "--connect-timeout",
        "500",
        "-c",
        &host,
        "-p",
        &port,
        "-t",
        &seconds,
    ];
    let said = client::run("iperf3", &[&args, flags].concat())?;
    received(&said).ok_or_else(|| format!("iperf3 says {}", said.trim()))
}

fn received(said: &str) -> Option<Transferred> {
    let said: Value = serde_json::from_str(said).ok()?;
    let sum = said.get("end")?.get("sum_received")?;
    Some(Transferred {
        mib: sum.get("bytes")?.as_f64()? / MIB,
        seconds: sum.get("seconds")?.as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_what_was_received() {
        let said = r#"{"end": {"sum_sent": {"bytes": 9}, "sum_received": {"bytes": 2097152, "seconds": 4.0}}}"#;
        let expected = Transferred {
            mib: 2.0,
            seconds: 4.0,
        };
        assert_eq!(received(said), Some(expected));
        assert_eq!(received(r#"{"error": "unable to connect"}"#), None);
    }
}
