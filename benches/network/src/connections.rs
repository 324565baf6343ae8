//! New connections for a minute, second by second: `ab` without keep-alive, 100 clients, one
//! client address, a server that answers once and closes.
//!
//! The client's range of ports is used up several times over, so that its connections meet
//! those that the server still has in TIME_WAIT. Where that goes wrong, some wait a second
//! for a retransmission, and the rate of that second falls. Machine and client have one CPU of
//! the host together; where others use that, too, `counted` says more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use bench_pair::{Better, Guest, OUTPUT, OneCpu, Table, server};

use crate::client;
use crate::run::Run;
use crate::steadiness::Rates;

const PORT: u16 = 80;
const SECONDS: u32 = 60;
/// What `ab` has room for; the time ends first.
const REQUESTS_MAX: &str = "3000000";
/// More than the client has ports.
const PASSED_MIN: f64 = 30_000.0;

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let _all_on_one = OneCpu::take()?;
    let server = server("http_once")?;
    let mut guest = run.boot(&[&server])?;
    guest.wait_for_answer(PORT, b"GET / HTTP/1.0\r\n\r\n")?;
    let url = format!("http://{}/", Guest::address(PORT));
    let log = format!("{OUTPUT}/connections.tsv");
    let time = run.amount(SECONDS).to_string();
    let args = [
        "-q",
        "-c",
        "100",
        "-t",
        &time,
        "-n",
        REQUESTS_MAX,
        "-g",
        &log,
        &url,
    ];
    let said = client::run("ab", &args)?;
    let failed = client::number(&said, "Failed requests:")?;
    let passed = client::number(&said, "Complete requests:")?;
    if failed > 0.0 || (passed <= PASSED_MIN && !run.quick) {
        return Err(format!("{passed} connections passed, {failed} failed"));
    }
    let events = File::open(&log).and_then(|log| starts(BufReader::new(log)));
    let events = events.map_err(|error| format!("{log}: {error}"))?;
    let rates = Rates::of(&events).ok_or("ab ran for less than a second")?;
    let system = run.system;
    for (what, figure) in [
        ("median", rates.median),
        ("min", rates.min),
        ("max", rates.max),
    ] {
        let name = format!("new connections, {what} of the seconds, /s");
        table.add(&name, Better::More, system, figure);
    }
    let name = "new connections, worst second's distance from the median, %";
    table.add(name, Better::Less, system, rates.worst_deviation_percent());
    let name = format!("new connections passed in {time} s, thousands");
    table.add(&name, Better::More, system, passed / 1000.0);
    Ok(())
}

/// How many requests started in each second. In `ab`'s table the second column is the second
/// of a request's start.
fn starts(log: impl BufRead) -> io::Result<BTreeMap<u64, u32>> {
    let mut events = BTreeMap::new();
    // The first line has the headings.
    for line in log.lines().skip(1) {
        if let Some(second) = line?.split('\t').nth(1).and_then(|text| text.parse().ok()) {
            *events.entry(second).or_default() += 1;
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_the_second_of_their_start() {
        let log = "starttime\tseconds\tctime\tdtime\tttime\twait\n\
            Sun Nov 22 03:17:19 2026\t1795317439\t0\t1\t1\t1\n\
            Sun Nov 22 03:17:20 2026\t1795317440\t0\t1\t1\t1\n\
            Sun Nov 22 03:17:19 2026\t1795317439\t1\t1\t2\t1\n";
        let events = starts(log.as_bytes()).expect("readable");
        let expected = BTreeMap::from([(1_795_317_439, 2), (1_795_317_440, 1)]);
        assert_eq!(events, expected);
    }
}
