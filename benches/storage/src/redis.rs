//! Servers that answer a SET when it is on the disk, and Redis' own client on the host: Redis with its append-only file on
//! ext4 and, by `libsietch.so`, on a log (`docs/vsa.md`); and a server of our own on the log.

use std::process::Command;

use bench_pair::{Guest, example, library};

use crate::shell::Shell;

const PORT: u16 = 6379;
/// How many ask at a time.
pub const CLIENTS: [u32; 2] = [1, 50];
const REDIS: &str = "/usr/bin/redis-server --protected-mode no --save '' --dir /mnt --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0";
const FILES: &str = "/mnt/appendonlydir/*.incr.aof";

/// What makes a SET durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Ext4,
    Log,
    Native,
    /// By libsietch.so, the log in an area, by its ring.
    RingLog,
    RingNative,
    /// The log on an NVMe function.
    FunctionLog,
    FunctionNative,
}

/// Where the area is that ways by a ring use.
pub const AREA: &str = "/dev/vsa/log";

impl Way {
    /// On blocks that the kernel's disk has. In the order of the page.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Log, Self::Native];

    /// How it is named on the page.
    pub fn name(self, clients: u32) -> String {
        let many = if clients == 1 { "" } else { "s" };
        format!("{}, {clients} client{many}", self.server())
    }

    /// The server, and where its log is.
    pub fn server(self) -> &'static str {
        match self {
            Self::Ext4 => "Redis, `appendfsync always`",
            Self::Log => "Redis, the same by `libsietch.so` on a log",
            Self::Native => "`durable_kv` on a log",
            Self::RingLog => "Redis, the same by `libsietch.so` on a log by an area's ring",
            Self::RingNative => "`durable_kv` on a log by an area's ring",
            Self::FunctionLog => "Redis, the same by `libsietch.so` on a log on an NVMe function",
            Self::FunctionNative => "`durable_kv` on a log on an NVMe function",
        }
    }

    /// The path of the blocks with the log.
    fn blocks(self, shell: &Shell, function: &str) -> String {
        match self {
            Self::Ext4 | Self::Log | Self::Native => format!("/dev/{}", shell.raw_disk()),
            Self::RingLog | Self::RingNative => AREA.into(),
            Self::FunctionLog | Self::FunctionNative => {
                format!("/sys/bus/pci/devices/{function}")
            }
        }
    }

    /// What the server's program is called.
    pub fn program(self) -> &'static str {
        match self {
            Self::Native | Self::RingNative | Self::FunctionNative => "durable_kv",
            _ => "redis-server",
        }
    }

    /// Starts the server, if it does not run yet, in the other's place. A log begins with zeroes.
    ///
    /// Errors: what a server said that has ended since.
    pub fn start(self, shell: &mut Shell) -> Result<(), String> {
        self.start_on(shell, "")
    }

    /// The same where there is an NVMe function, whose blocks begin with zeroes.
    pub fn start_on(self, shell: &mut Shell, function: &str) -> Result<(), String> {
        let blocks = self.blocks(shell, function);
        let server = match self {
            Self::Ext4 => REDIS.to_string(),
            Self::Log | Self::RingLog | Self::FunctionLog => {
                format!("env LD_PRELOAD=/lib/libsietch.so SIETCH_LOG='{FILES}={blocks}' {REDIS}")
            }
            Self::Native | Self::RingNative | Self::FunctionNative => {
                format!("/bin/durable_kv {PORT} {blocks}")
            }
        };
        let blank = match self {
            Self::FunctionLog | Self::FunctionNative => String::new(),
            _ => format!("busybox dd if=/dev/zero of={blocks} bs=4096 count=4 2>/dev/null;"),
        };
        shell.run(&format!(
            "if [ \"$(busybox cat /tmp/way)\" = {self:?} ]; then \
                 busybox pidof redis-server durable_kv >/dev/null && exit 0; busybox cat /tmp/server.log; exit 1; \
             fi; \
             busybox killall redis-server durable_kv 2>/dev/null; \
             while busybox pidof redis-server durable_kv >/dev/null; do busybox sleep 0.2; done; \
             busybox rm -rf /mnt/appendonlydir; {blank} busybox sync; echo {self:?} >/tmp/way; {server} >/tmp/server.log 2>&1 </dev/null &"
        ))?;
        let ask: &[u8] = match self.program() {
            "durable_kv" => b"*1\r\n$4\r\nPING\r\n",
            _ => b"PING\r\n",
        };
        shell.wait_for_answer(PORT, ask)
    }
}

/// Ends the server that runs.
pub fn stop(shell: &mut Shell) -> Result<(), String> {
    let stopped = shell.run(
        "busybox killall redis-server durable_kv 2>/dev/null; \
         while busybox pidof redis-server durable_kv >/dev/null; do busybox sleep 0.2; done; \
         busybox rm -f /tmp/way",
    );
    stopped.map(drop)
}

/// Builds the servers and the library; what has them in the guest.
pub fn additions() -> Result<Vec<String>, String> {
    let preloaded = library("sietch")?;
    let server = example("sietch-io", "durable_kv")?;
    Ok(vec![
        "/usr/bin/redis-server:/usr/bin/redis-server".into(),
        format!("{preloaded}:/lib/libsietch.so"),
        format!("{server}:/bin/durable_kv"),
    ])
}

/// How fast it answered, and how late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// Requests a second.
    pub rate: f64,
    /// Milliseconds below which were half, 99 % and 99.9 % of the answers.
    pub percentiles_ms: [f64; 3],
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
