//! One machine that counts instructions, with Redis and its benchmark in it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use cli::flags::{Cli, Command, RunFlags};
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Accel, Net, PROFILE_START, PROFILE_START_WAITS, Qemu, Transcript, Vm};

/// Where the machine's files go.
const OUTPUT: &str = "build/bench-profile";
/// How long a machine may take from start to end.
const PATIENCE: Duration = Duration::from_secs(240);
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
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let flags = flags()?;
        let around = GuestConfig {
            net: Net::None,
            ..GuestConfig::default()
        };
        let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
        let mut machine = machine_plan::machine(&flags, &plan, Path::new(OUTPUT))
            .map_err(|error| text(&error))?;
        machine.accel = Accel::TcgCounted;
        if let Some(request) = self.request() {
            machine.command_line += &format!(" profile={}", char::from(request));
        }
        fs::create_dir_all(OUTPUT).map_err(|error| text(&error))?;
        fs::write(&machine.initrd, &plan.image).map_err(|error| text(&error))?;
        let qemu = Qemu::find().map_err(|error| text(&error))?;
        let (mut vm, console) = Vm::start(&qemu, &machine).map_err(|error| text(&error))?;
        let output = Transcript::of(console.output);
        match vm.wait_for(PATIENCE) {
            Ok(Some(_)) => {
                output.wait_for_end(PATIENCE);
                Ok(output.text())
            }
            _ => Err(format!("{} did not end: {}", self.name(), output.text())),
        }
    }
}

fn flags() -> Result<RunFlags, String> {
    let added = ["redis-server", "redis-benchmark", "redis-cli"].map(|name| {
        let path = format!("/usr/bin/{name}");
        format!("{path}:{path}")
    });
    let mut line = vec!["sietch", "run", "--net", "none"];
    for added in &added {
        line.extend(["--add", added]);
    }
    line.extend(["busybox", "sh", "-c", SCRIPT]);
    let parsed = Cli::try_parse_from(line).map_err(|error| error.to_string())?;
    match parsed.command {
        Command::Run(flags) => Ok(*flags),
        _ => Err("the line is not `sietch run`".into()),
    }
}
