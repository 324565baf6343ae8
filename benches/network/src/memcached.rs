//! memcached under `memcaslap`: 50 clients, nine gets for a set, values of 100 bytes.

use bench_pair::{Guest, Table};

use crate::client;
use crate::run::Run;

const PORT: u16 = 11211;
const SECONDS: u32 = 6;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP_SECONDS: u32 = 1;

/// One round: as many threads as virtual CPUs.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let threads = run.size.cpus.to_string();
    let mut guest = run.boot(&["memcached", "-u", "nobody", "-t", &threads])?;
    guest.wait_for_answer(PORT, b"version\r\n")?;
    load(WARM_UP_SECONDS)?;
    let before_s = guest.cpu_s();
    let requests = load(run.amount(SECONDS))?;
    let cpu_us = (guest.cpu_s() - before_s) * 1e6 / requests;
    let rate = requests / f64::from(run.amount(SECONDS));
    run.add_rate(table, "memcached, 50 clients", rate, cpu_us);
    Ok(())
}

/// Requests that were answered in so many seconds.
fn load(seconds: u32) -> Result<f64, String> {
    let server = Guest::address(PORT).to_string();
    let time = format!("{seconds}s");
    // A window of 1000 objects for each client fits into the server's memory.
    let args = [
        "-s", &server, "-T", "1", "-c", "50", "-w", "1k", "-X", "100", "-t", &time,
    ];
    let said = client::run("memcaslap", &args)?;
    let requests = client::number(&said, "cmd_get:")? + client::number(&said, "cmd_set:")?;
    match client::number(&said, "get_misses:")? {
        0.0 if requests > 0.0 => Ok(requests),
        missed => Err(format!("{missed} of {requests} requests missed")),
    }
}
