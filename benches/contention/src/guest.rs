//! One machine from its boot to its end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use cli::flags::{Cli, Command, RunFlags};
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Accel, Net, Qemu, Transcript, Vm};

use crate::load::OUTPUT;

/// How long a machine may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has a machine run the shell's line; what it wrote.
pub fn run(cpus: u8, files: &[String], script: &str) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let flags = flags(cpus, files, script)?;
    let around = GuestConfig {
        net: Net::None,
        ..GuestConfig::default()
    };
    let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
    let mut machine =
        machine_plan::machine(&flags, &plan, Path::new(OUTPUT)).map_err(|error| text(&error))?;
    machine.accel = Accel::Tcg;
    fs::write(&machine.initrd, &plan.image).map_err(|error| text(&error))?;
    let qemu = Qemu::find().map_err(|error| text(&error))?;
    let (mut vm, console) = Vm::start(&qemu, &machine).map_err(|error| text(&error))?;
    let output = Transcript::of(console.output);
    match vm.wait_for(PATIENCE) {
        Ok(Some(_)) => {
            output.wait_for_end(PATIENCE);
            Ok(output.text())
        }
        _ => Err(format!("`{script}` did not end: {}", output.text())),
    }
}

fn flags(cpus: u8, files: &[String], script: &str) -> Result<RunFlags, String> {
    let (cpus, script) = (cpus.to_string(), format!("export CPUS={cpus}; {script}"));
    let mut line = vec![
        "sietch", "run", "--net", "none", "-m", "1G", "--cpus", &cpus,
    ];
    for file in files {
        line.extend(["--add", file]);
    }
    line.extend(["busybox", "sh", "-c", &script]);
    match Cli::try_parse_from(line)
        .map_err(|error| error.to_string())?
        .command
    {
        Command::Run(flags) => Ok(*flags),
        _ => Err("the line is not `sietch run`".into()),
    }
}
