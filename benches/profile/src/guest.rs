//! One machine that counts instructions, with Redis and its benchmark in it.

use std::path::Path;

use bench_pair::run_alone;
use qemu::{Accel, Machine, PROFILE_START, PROFILE_START_WAITS};

/// Where the machine's files go.
const OUTPUT: &str = "build/bench-profile";
/// Instructions in a second of the machine's clock (`-icount shift=0`).
const INSTRUCTIONS_PER_SECOND: f64 = 1e9;
/// What the machine runs; the benchmark's lines are all that it writes.
const SCRIPT: &str = "redis-server --save '' --daemonize yes >/dev/null; \
    until redis-cli ping >/dev/null 2>&1; do sleep 0.1; done; \
    redis-benchmark --csv -n 20000 -c 20 -t set,get; redis-cli shutdown";

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiler {
    /// Nobody.
    Off,
    /// Samples of the CPU.
    Samples,
    /// Records of waits and wake-ups.
    Waits,
}

/// Instructions that a request takes, in kernel, server and client.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// SET.
    pub set: f64,
    /// GET.
    pub get: f64,
}

impl Profiler {
    /// In the order of the table's rows.
    pub const ALL: [Self; 3] = [Self::Off, Self::Samples, Self::Waits];

    /// The name of its row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "nobody profiles",
            Self::Samples => "997 samples a second",
            Self::Waits => "every wait and wake-up",
        }
    }

    fn request(self) -> Option<u8> {
        match self {
            Self::Off => None,
            Self::Samples => Some(PROFILE_START),
            Self::Waits => Some(PROFILE_START_WAITS),
        }
    }

    /// Runs the benchmark under this profiler.
    pub fn run(self) -> Result<Figures, String> {
        let console = self.console()?;
        let figure = |name: &str| {
            let line = console.lines().find(|line| line.contains(name));
            let per_second = line.and_then(|line| line.split('"').nth(3)?.parse::<f64>().ok());
            let per_second = per_second.ok_or_else(|| format!("no line for {name}: {console}"));
            per_second.map(|per_second| INSTRUCTIONS_PER_SECOND / per_second)
        };
        Ok(Figures {
            set: figure("\"SET\"")?,
            get: figure("\"GET\"")?,
        })
    }

    fn console(self) -> Result<String, String> {
        let added = ["redis-server", "redis-benchmark", "redis-cli"].map(|name| {
            let path = format!("/usr/bin/{name}");
            format!("{path}:{path}")
        });
        let mut args = Vec::new();
        for added in &added {
            args.extend(["--add", added]);
        }
        args.extend(["busybox", "sh", "-c", SCRIPT]);
        let watched = |machine: &mut Machine| {
            machine.accel = Accel::TcgCounted;
            if let Some(request) = self.request() {
                machine.command_line += &format!(" profile={}", char::from(request));
            }
        };
        run_alone(Path::new(OUTPUT), &args, watched)
            .map_err(|why| format!("{}: {why}", self.name()))
    }
}
