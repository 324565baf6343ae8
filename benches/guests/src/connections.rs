//! New connections per second: `ab` without keep-alive against a minimal server.

use std::process::Command;

use bench_pair::{Better, Guest, System, Table, server};

const PORT: u16 = 80;

/// One round.
pub fn measure(system: System, table: &mut Table) -> Result<(), String> {
    let server = server("http_once")?;
    let mut guest = system.boot(&["-m", "512M", &server])?;
    guest.wait_for_answer(PORT, b"GET / HTTP/1.0\r\n\r\n")?;
    let url = format!("http://{}/", Guest::address(PORT));
    let output = Command::new("ab")
        .args(["-q", "-n", "20000", "-c", "100", &url])
        .output();
    let output = output.map_err(|error| format!("ab: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |label: &str| {
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(label))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = number("Failed requests:");
    let rate = number("Requests per second:");
    let (Some(0.0), Some(rate)) = (failed, rate) else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ab says: {} {}", complaint.trim(), text.trim()));
    };
    table.add(
        "new TCP connection per request, /s",
        Better::More,
        system,
        rate,
    );
    if let Some(slowest_ms) = number("99%") {
        table.add(
            "new TCP connection per request, p99, ms",
            Better::Less,
            system,
            slowest_ms,
        );
    }
    Ok(())
}
