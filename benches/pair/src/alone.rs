//! A machine without a network, from its boot to its end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cli::flags::RunFlags;
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Machine, Net, Qemu, Transcript, Vm};

/// How long a machine may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has a machine that `change` makes special run a program until it ends; what that wrote. `args`
/// are flags, program and arguments of `sietch run`; `folder` is for the machine's files.
pub fn run_alone(
    folder: &Path,
    args: &[&str],
    change: impl FnOnce(&mut Machine),
) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let line = ["sietch", "run", "--net", "none"];
    let flags = RunFlags::of_line(line.iter().chain(args))?;
    let around = GuestConfig {
        net: Net::None,
        ..GuestConfig::default()
    };
    let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
    let mut machine = machine_plan::machine(&flags, &plan, folder).map_err(|error| text(&error))?;
    change(&mut machine);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&machine.initrd, &plan.image))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
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
            "the machine did not end: {}{}",
            output.text(),
            complaints.text()
        )),
    }
}
