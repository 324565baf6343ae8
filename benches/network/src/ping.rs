//! 10 000 pings through each card: whether some take much longer than most.

use bench_pair::echo::Echo;
use bench_pair::{Better, Table};

use crate::client;
use crate::run::Run;
use crate::steadiness::Spread;

const PINGS: u32 = 10_000;
const INTERVAL_S: &str = "0.002";
/// More lost pings of a thousand than this are a fault of their own.
const LOST_MAX_PER_MILLE: u32 = 1;

/// One round through virtio-net.
pub fn virtio(run: &Run, table: &mut Table) -> Result<(), String> {
    measure(run, table, "virtio-net", &[])
}

/// One round through an e1000.
pub fn e1000(run: &Run, table: &mut Table) -> Result<(), String> {
    measure(run, table, "e1000", &["--nic", "e1000"])
}

/// One round through an 82576.
pub fn igb(run: &Run, table: &mut Table) -> Result<(), String> {
    measure(run, table, "igb", &["--nic", "igb"])
}

fn measure(run: &Run, table: &mut Table, card: &str, flags: &[&str]) -> Result<(), String> {
    let echo = Echo::boot(run.system, &[&["-m", "512M"], flags].concat())?;
    let host = echo.socket.peer_addr().map_err(|error| error.to_string())?;
    let host = host.ip().to_string();
    let pings = run.amount(PINGS);
    let count = pings.to_string();
    let said = client::run("ping", &["-n", "-i", INTERVAL_S, "-c", &count, &host])?;
    let times = times_us(&said);
    let lost = pings.saturating_sub(times.len() as u32);
    if lost * 1000 > pings * LOST_MAX_PER_MILLE {
        return Err(format!("{lost} of {pings} pings were lost"));
    }
    let spread = Spread::of(times).ok_or("no ping came back")?;
    for (what, figure) in [("median", spread.median), ("p99", spread.p99)] {
        let name = format!("ping, {card}, {what}, µs");
        table.add(&name, Better::Less, run.system, figure);
    }
    let name = format!("ping, {card}, p99 / median");
    table.add(&name, Better::Less, run.system, spread.p99 / spread.median);
    Ok(())
}

/// `64 bytes from 10.0.2.15: icmp_seq=1 ttl=64 time=0.148 ms` gives 148.
fn times_us(said: &str) -> Vec<f64> {
    let times = said.lines().filter_map(|line| {
        let (_, time) = line.split_once(" time=")?;
        time.strip_suffix(" ms")?.parse::<f64>().ok()
    });
    times.map(|ms| ms * 1000.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_times_and_the_rest_has_none() {
        let said = "PING 10.0.2.15 (10.0.2.15) 56(84) bytes of data.\n\
            64 bytes from 10.0.2.15: icmp_seq=1 ttl=64 time=0.250 ms\n\
            64 bytes from 10.0.2.15: icmp_seq=2 ttl=64 time=1.50 ms\n\n\
            2 packets transmitted, 2 received, 0% packet loss, time 2ms\n";
        assert_eq!(times_us(said), [250.0, 1500.0]);
    }
}
