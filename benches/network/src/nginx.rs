//! nginx with a file of 1 KiB under `wrk`, 50 connections that stay open.

use std::fs;

use bench_pair::{Guest, OUTPUT, Table};

use crate::client;
use crate::run::Run;

const PORT: u16 = 80;
const SECONDS: u32 = 6;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP_SECONDS: u32 = 1;
const FILE_BYTES: usize = 1024;

/// One round: as many workers as virtual CPUs.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let [site, configuration] = write_files(run.size.cpus)?;
    let args = [
        "--add",
        &site,
        "--add",
        &configuration,
        "nginx",
        "-c",
        "/nginx.conf",
    ];
    let mut guest = run.boot(&args)?;
    guest.wait_for_answer(PORT, b"GET / HTTP/1.0\r\n\r\n")?;
    load(WARM_UP_SECONDS)?;
    let before_s = guest.cpu_s();
    let said = load(run.amount(SECONDS))?;
    let cpu_us = (guest.cpu_s() - before_s) * 1e6 / requests(&said)?;
    let rate = client::number(&said, "Requests/sec:")?;
    run.add_rate(table, "nginx, 1 KiB files, 50 connections", rate, cpu_us);
    Ok(())
}

/// What `wrk` says after so many seconds without an error.
fn load(seconds: u32) -> Result<String, String> {
    let (url, time) = (
        format!("http://{}/", Guest::address(PORT)),
        format!("-d{seconds}s"),
    );
    let said = client::run("wrk", &["-t1", "-c50", &time, &url])?;
    match said.contains("Socket errors") || said.contains("Non-2xx") {
        true => Err(format!("wrk says {}", said.trim())),
        false => Ok(said),
    }
}

/// `  61234 requests in 5.10s, 74.00MB read` gives 61234.
pub fn requests(said: &str) -> Result<f64, String> {
    let line = said.lines().find(|line| line.contains(" requests in "));
    let count = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    count.ok_or_else(|| format!("wrk counts no requests: {}", said.trim()))
}

/// Writes site and configuration, each as `--add` takes it.
fn write_files(workers: u8) -> Result<[String; 2], String> {
    let (site, configuration) = (format!("{OUTPUT}/site"), format!("{OUTPUT}/nginx.conf"));
    let text = format!(
        "daemon off;\nworker_processes {workers};\nerror_log stderr;\npid /run/nginx.pid;\n\
        events {{ worker_connections 512; }}\n\
        http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
        server {{ listen {PORT}; root /site; }} }}\n"
    );
    fs::create_dir_all(&site)
        .and_then(|()| fs::write(format!("{site}/index.html"), "s".repeat(FILE_BYTES)))
        .and_then(|()| fs::write(&configuration, text))
        .map_err(|error| format!("{site}: {error}"))?;
    Ok([
        format!("{site}:/site"),
        format!("{configuration}:/nginx.conf"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrks_requests_are_counted() {
        let said = "Running 5s test\n  61234 requests in 5.10s, 74.00MB read\n";
        assert_eq!(requests(said), Ok(61234.0));
        assert!(requests("unable to connect").is_err());
    }
}
