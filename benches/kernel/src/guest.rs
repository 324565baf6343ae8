//! The systems under comparison, booted alike on a machine that counts instructions.

use std::path::Path;

use bench_pair::run_alone;
use qemu::{Accel, Machine};

use crate::build::{OUTPUT, Programs};

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
        let child = format!("{}:{CHILD}", programs.child);
        let mut args = vec!["-m", MEMORY, "--add", &child];
        if self != Self::Sietch {
            args.extend(["--add", "build/linux/init:/init"]);
        }
        args.extend([programs.costs.as_str(), CHILD]);
        run_alone(Path::new(OUTPUT), &args, |machine| {
            self.make_special(machine)
        })
        .map_err(|why| format!("{}: {why}", self.name()))
    }

    fn make_special(self, machine: &mut Machine) {
        machine.accel = Accel::TcgCounted;
        if self != Self::Sietch {
            machine.kernel = "build/linux/vmlinuz".into();
            machine.command_line += BY_WORDS;
        }
        if self == Self::LinuxBare {
            machine.command_line += " mitigations=off";
        }
    }
}
