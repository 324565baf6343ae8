//! The systems under comparison, booted alike on a machine that counts instructions.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use cli::flags::{Cli, Command, RunFlags};
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Accel, Net, Qemu, Transcript, Vm};

use crate::build::{OUTPUT, Programs};

/// How long a guest may take from start to end.
const PATIENCE: Duration = Duration::from_secs(240);
/// Where the image has the program that a child turns into.
const CHILD: &str = "/bin/nothing";
const MEMORY: &str = "512M";
/// Lets Linux clear and copy pages by words as Sietch does: by bytes, as it would with
/// these features, the count of a repeated instruction is eight times higher.
const BY_WORDS: &str = " clearcpuid=erms,fsrm";

/// What runs in the guest beneath the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Debian's Linux kernel for clouds as it comes.
    Linux,
    /// The same with `mitigations=off` on its command line.
    LinuxBare,
    /// Sietch.
    Sietch,
}

impl System {
    /// In the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::Linux, Self::LinuxBare, Self::Sietch];

    /// The heading of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux, default",
            Self::LinuxBare => "Linux, `mitigations=off`",
            Self::Sietch => "Sietch",
        }
    }

    /// Boots the program; what it wrote until it ended.
    pub fn run(self, programs: &Programs) -> Result<String, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let flags = self.flags(programs)?;
        let around = GuestConfig {
            net: Net::None,
            ..GuestConfig::default()
        };
        let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
        let state = Path::new(OUTPUT);
        let mut machine =
            machine_plan::machine(&flags, &plan, state).map_err(|error| text(&error))?;
        machine.accel = Accel::TcgCounted;
        if self != Self::Sietch {
            machine.kernel = "build/linux/vmlinuz".into();
            machine.command_line += BY_WORDS;
        }
        if self == Self::LinuxBare {
            machine.command_line += " mitigations=off";
        }
        fs::write(&machine.initrd, &plan.image).map_err(|error| text(&error))?;
        let qemu = Qemu::find().map_err(|error| text(&error))?;
        let (mut vm, console) = Vm::start(&qemu, &machine).map_err(|error| text(&error))?;
        let output = Transcript::of(console.output);
        let complaints = Transcript::of(console.complaints);
        match vm.wait_for(PATIENCE) {
            Ok(Some(_)) => {
                output.wait_for_end(PATIENCE);
                Ok(output.text())
            }
            _ => Err(format!(
                "{} did not end: {}{}",
                self.name(),
                output.text(),
                complaints.text()
            )),
        }
    }

    fn flags(self, programs: &Programs) -> Result<RunFlags, String> {
        let child = format!("{}:{CHILD}", programs.child);
        let mut line = vec!["sietch", "run", "--net", "none", "-m", MEMORY];
        line.extend(["--add", &child]);
        if self != Self::Sietch {
            line.extend(["--add", "build/linux/init:/init"]);
        }
        line.extend([programs.costs.as_str(), CHILD]);
        match Cli::try_parse_from(line)
            .map_err(|error| error.to_string())?
            .command
        {
            Command::Run(flags) => Ok(*flags),
            _ => Err("the line is not `sietch run`".into()),
        }
    }
}
