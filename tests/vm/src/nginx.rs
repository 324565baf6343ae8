//! nginx with two workers and sendfile, under wrk, through a reload.

use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::guest::{Guest, Setup, write_file};
use crate::http::HELLO;

/// The tests.
pub const TESTS: &[Test] = &[(
    "nginx with two workers serves wrk through a reload without an error",
    reload,
)];

const CONFIGURATION: &str = "\
daemon off;
worker_processes 2;
error_log stderr;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    server { listen 80; root /site; }
}
";
/// A connection that hangs since the reload is seen, a host that is busy is not.
const TIMEOUT: &str = "5s";
/// A shell that starts nginx and then runs what is typed.
const SCRIPT: &str = "nginx -c /nginx.conf & while read line; do eval \"$line\"; done";

fn reload(setup: &Setup) -> Result<(), String> {
    let page = write_file("site/index.html", "sand ".repeat(2000))?;
    let configuration = write_file("nginx.conf", CONFIGURATION)?;
    let additions = [
        format!("{page}:/site/index.html"),
        format!("{configuration}:/nginx.conf"),
    ];
    let nginx = "/usr/sbin/nginx:/usr/sbin/nginx";
    let args = [
        "--add",
        nginx,
        "--add",
        &additions[0],
        "--add",
        &additions[1],
        "busybox",
        "sh",
        "-c",
        SCRIPT,
    ];
    let (mut guest, address) = setup.serve(80, &args)?;
    guest.expect_answer(address, HELLO)?;
    thread::scope(|scope| {
        let wrk = scope.spawn(|| wrk(address));
        thread::sleep(Duration::from_secs(2));
        guest.type_text("nginx -c /nginx.conf -s reload && echo reload was sent\n")?;
        wrk.join().unwrap_or_else(|_| Err("wrk panicked".into()))
    })
    .map_err(|why| guest.explain(&why))?;
    guest.expect("reload was sent", Duration::from_secs(10))?;
    end(guest)
}

fn wrk(address: SocketAddr) -> Result<(), String> {
    let url = format!("http://{address}/index.html");
    let output = Command::new("wrk")
        .args(["-t1", "-c50", "-d8s", "--timeout", TIMEOUT, &url])
        .output();
    let output = output.map_err(|error| format!("wrk: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let has_served = said.contains("Requests/sec") && !said.contains("Requests/sec:      0.00");
    // A worker that reloads closes its idle connections, which wrk counts as read
    // errors; refused or timed-out connections and other statuses are faults.
    let has_faults = said.contains("Non-2xx")
        || said.lines().any(|line| {
            line.contains("Socket errors")
                && !(line.contains("connect 0") && line.contains("timeout 0"))
        });
    match output.status.success() && has_served && !has_faults {
        true => Ok(()),
        false => Err(format!("failed wrk: {}", said.trim())),
    }
}

fn end(mut guest: Guest) -> Result<(), String> {
    guest.type_text("nginx -c /nginx.conf -s quit; sleep 1; exit 0\n")?;
    guest.wait(Duration::from_secs(20)).map(drop)
}
