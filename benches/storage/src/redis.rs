//! Redis, which answers a SET when it is on the disk (`appendfsync always`), and its own client on the host.

use std::process::Command;

use bench_pair::Guest;

use crate::shell::Shell;

/// The server.
pub const PROGRAM: &str = "/usr/bin/redis-server";
const PORT: u16 = 6379;
/// How many ask at a time.
pub const CLIENTS: [u32; 2] = [1, 50];

/// How it is named on the page.
pub fn name(clients: u32) -> String {
    match clients {
        1 => "Redis, `appendfsync always`, 1 client".into(),
        _ => format!("Redis, `appendfsync always`, {clients} clients"),
    }
}

/// How fast it answered, and how late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// Requests a second.
    pub rate: f64,
    /// Milliseconds below which were half, 99 % and 99.9 % of the answers.
    pub percentiles_ms: [f64; 3],
}

/// Starts the server, if it does not run yet.
pub fn start(shell: &mut Shell) -> Result<(), String> {
    shell.run(&format!(
        "busybox pidof redis-server || {PROGRAM} --protected-mode no --save '' --dir /mnt --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0 >/tmp/redis.log 2>&1 </dev/null &"
    ))?;
    shell.wait_for_answer(PORT, b"PING\r\n")
}

/// So many SETs of 3 bytes, as the client has them.
pub fn set(clients: u32, count: u32) -> Result<Answers, String> {
    let output = Command::new("redis-benchmark")
        .args(["-h", &Guest::address(PORT).ip().to_string()])
        .args(["-c", &clients.to_string(), "-n", &count.to_string()])
        .args(["-t", "set", "-r", "1000", "--precision", "3"])
        .output()
        .map_err(|error| format!("redis-benchmark: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    answers(&said).ok_or_else(|| format!("redis-benchmark says {said:?}"))
}

fn answers(said: &str) -> Option<Answers> {
    let lines = said.split(['\n', '\r']).map(str::trim);
    let rate = lines
        .clone()
        .find_map(|line| line.strip_prefix("throughput summary: "))?;
    let rate = rate.split(' ').next()?.parse().ok()?;
    // "99.902% <= 5.103 milliseconds (cumulative count 4995)"
    let steps = lines.filter_map(|line| {
        let (share, rest) = line.split_once("% <= ")?;
        let ms = rest.split_once(" milliseconds")?.0;
        Some((share.parse::<f64>().ok()?, ms.parse::<f64>().ok()?))
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    let below = |wanted: f64| {
        let step = steps.iter().find(|(share, _)| *share >= wanted);
        step.map(|(_, ms)| *ms)
    };
    Some(Answers {
        rate,
        percentiles_ms: [below(50.0)?, below(99.0)?, below(99.9)?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_tail_stand_among_what_the_client_says() {
        let said = "\rSET: rps=0.0\n  50.000% <= 0.311 milliseconds (cumulative count 51)\n\
            99.219% <= 1.407 milliseconds (cumulative count 100)\n\
            99.902% <= 2.5 milliseconds (cumulative count 100)\n\
            \n  throughput summary: 1234.50 requests per second\n";
        let answers = answers(said).expect("all is there");
        assert_eq!(answers.rate, 1234.5);
        assert_eq!(answers.percentiles_ms, [0.311, 1.407, 2.5]);
    }
}
