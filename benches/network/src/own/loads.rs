//! Loads of 50 clients for so many seconds: how many requests were answered, and the client's rate.

use std::net::Ipv4Addr;

use crate::{client, nginx};

/// What a load was: requests, and their rate where the client says one.
pub type Load = (f64, Option<f64>);

/// memcached by `memcaslap`: nine gets for a set, values of 100 bytes.
pub fn memcached(host: Ipv4Addr, seconds: u32) -> Result<Load, String> {
    let (server, time) = (format!("{host}:11211"), format!("{seconds}s"));
    let args = [
        "-s", &server, "-T", "1", "-c", "50", "-w", "1k", "-X", "100", "-t", &time,
    ];
    let said = client::run("memcaslap", &args)?;
    let requests = client::number(&said, "cmd_get:")? + client::number(&said, "cmd_set:")?;
    Ok((requests, Some(requests / f64::from(seconds))))
}

/// nginx by `wrk`.
pub fn nginx(host: Ipv4Addr, seconds: u32) -> Result<Load, String> {
    let url = format!("http://{host}/");
    let said = client::run("wrk", &["-t1", "-c50", &format!("-d{seconds}s"), &url])?;
    if said.contains("Socket errors") || said.contains("Non-2xx") {
        return Err(format!("wrk says {}", said.trim()));
    }
    let rate = client::number(&said, "Requests/sec:")?;
    Ok((nginx::requests(&said)?, Some(rate)))
}
