//! One machine from its boot to its end.

use std::path::Path;

use bench_pair::run_alone;
use qemu::Accel;

use crate::load::OUTPUT;

/// How the machine's CPUs come to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// They take turns.
    Turns,
    /// Each is a thread, which the host runs when it likes.
    Threads,
}

impl Host {
    fn accel(self) -> Accel {
        match self {
            Self::Turns => Accel::TcgTurns,
            Self::Threads => Accel::Tcg,
        }
    }

    /// Seconds by the machine's clock in which a server has begun.
    fn startup(self) -> u8 {
        match self {
            Self::Turns => 1,
            Self::Threads => 3,
        }
    }
}

/// Has a machine run the shell's line; what it wrote.
pub fn run(host: Host, cpus: u8, files: &[String], script: &str) -> Result<String, String> {
    let startup = host.startup();
    let line = format!("export CPUS={cpus} STARTUP={startup}; {script}");
    let cpus = cpus.to_string();
    let mut args = vec!["-m", "1G", "--cpus", &cpus];
    for file in files {
        args.extend(["--add", file]);
    }
    args.extend(["busybox", "sh", "-c", &line]);
    run_alone(Path::new(OUTPUT), &args, |machine| {
        machine.accel = host.accel()
    })
    .map_err(|why| format!("`{script}`: {why}"))
}
