//! New connections for a minute, second by second, by the clock of the guest's instructions.
//!
//! On a host that others use too, the rate of a second says as much about the host as about the
//! guest ([`crate::connections`]): even a loop of additions changes by some percent. Here QEMU
//! counts instructions, each a nanosecond of the guest's clock, and `ab` runs in the machine
//! beside the server. What a second then lacks, the guest has wasted or waited for.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_pair::{Better, OneCpu, Table, server};
use qemu::Accel;

use crate::run::Run;
use crate::steadiness::Rates;

const SECONDS: u32 = 60;
/// How long the minute and the count may take on this host.
const PATIENCE: Duration = Duration::from_secs(900);
const AB: &str = "/usr/bin/ab:/usr/bin/ab";
/// More than the client has ports.
const PASSED_MIN: u32 = 30_000;

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let _all_on_one = OneCpu::take()?;
    let server = format!("{}:/bin/http_once", server("http_once")?);
    let script = script(run.amount(SECONDS));
    let args = [
        "-m", "1G", "--add", AB, "--add", &server, "busybox", "sh", "-c", &script,
    ];
    let guest = run
        .system
        .boot_on(&args, |machine| machine.accel = Accel::TcgCounted)?;
    let events = seconds(&guest.wait_for_end(PATIENCE)?);
    let passed: u32 = events.values().sum();
    let rates = Rates::of(&events).filter(|_| run.quick || passed > PASSED_MIN);
    let rates = rates.ok_or_else(|| format!("{passed} connections passed"))?;
    for (what, figure) in [
        ("median", rates.median),
        ("min", rates.min),
        ("max", rates.max),
    ] {
        let name =
            format!("new connections within the machine, {what} of the seconds, /s of its clock");
        table.add(&name, Better::More, run.system, figure);
    }
    let name = "new connections within the machine, worst second's distance from the median, %";
    table.add(
        name,
        Better::Less,
        run.system,
        rates.worst_deviation_percent(),
    );
    Ok(())
}

/// Serves, asks for so many seconds, and says how many requests each second saw begin.
fn script(seconds: u32) -> String {
    format!(
        "http_once & sleep 1; ab -q -c 100 -t {seconds} -n 3000000 -g /tmp/all http://127.0.0.1/ >/tmp/said; \
        awk -F'\t' 'NR > 1 {{ n[$2]++ }} END {{ for (s in n) print \"second\", s, n[s] }}' /tmp/all; \
        kill $!"
    )
}

/// `second 1795317439 120` counts 120 of that second.
fn seconds(said: &str) -> BTreeMap<u64, u32> {
    let count = |line: &str| {
        let (second, count) = line.trim().strip_prefix("second ")?.split_once(' ')?;
        Some((second.parse().ok()?, count.parse().ok()?))
    };
    said.lines().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_seconds_are_read_from_what_else_is_said() {
        let said = "sietch: up\r\nsecond 10 5\r\nsecond 11 7\r\n";
        assert_eq!(seconds(said), BTreeMap::from([(10, 5), (11, 7)]));
    }
}
