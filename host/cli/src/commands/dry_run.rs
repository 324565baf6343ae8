//! `sietch run --dry-run`: prints what starts the machine without this command, with QEMU or, by `--vmm`, with another
//! monitor.
//!
//! What is printed works by itself: the image is written, into a folder of the user's that the next dry run of the
//! same name takes over, and the program's input and output are at the first serial port, which is the terminal.

use std::fs;

use qemu::{Acceleration, FolderServer, Forwarder, Machine, Qemu};

use super::run::attach;
use crate::failure::Failure;
use crate::flags::{RunFlags, VmmFlag};
use crate::machine_plan::{self, GuestConfig, Plan};
use crate::state;
use crate::stdio::Console;
use crate::vmm;

/// How a machine's program reaches whoever types what is printed.
pub(super) const CONSOLE: Console = Console::Serial { is_terminal: true };
/// The folder of all dry runs; no machine is called so.
const FOLDER: &str = ".dry-run";

/// Prints the line: QEMU's own network leads the ports, without a passt beside it.
pub(super) fn print(
    flags: &RunFlags,
    mut plan: Plan,
    around: &GuestConfig,
    qemu: &Qemu,
) -> Result<u8, Failure> {
    let volumes = attach(flags, &mut plan)?;
    let name = flags.name.as_deref().unwrap_or(&plan.name);
    let folder = state::base().join(FOLDER).join(name);
    let mut machine = machine_plan::machine(flags, &plan, &folder)?;
    volumes.add_to(&mut machine);
    around.add_to(&mut machine);
    machine.forwarder = Forwarder::Qemu;
    let text = match flags.vmm {
        VmmFlag::Qemu => {
            let args = machine.qemu_args(Acceleration::choose(machine.accel)?);
            let program = qemu.path.display().to_string();
            shell_line([program].into_iter().chain(args))
        }
        VmmFlag::Firecracker => vmm::firecracker::script(&machine)?,
        VmmFlag::CloudHypervisor => vmm::cloud_hypervisor::line(&machine)?,
    };
    if flags.vmm != VmmFlag::Qemu {
        let notes = vmm::notes(flags.vmm, &machine);
        notes.iter().for_each(|note| eprintln!("sietch: {note}"));
    }
    note_daemons(&machine);
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    fs::write(&machine.initrd, &plan.image).map_err(Failure::file(&machine.initrd))?;
    println!("{text}");
    Ok(0)
}

/// Says which daemons QEMU calls, that `sietch run` would have started.
fn note_daemons(machine: &Machine) {
    let volumes = machine.volumes.iter();
    for volume in volumes.filter(|volume| volume.server == FolderServer::Virtiofsd) {
        let (folder, socket) = (&volume.host, machine.folder_socket(&volume.tag));
        let words = ["virtiofsd", "--xattr", "--shared-dir"].map(ToString::to_string);
        let paths = [
            folder.display().to_string(),
            "--socket-path".into(),
            socket.display().to_string(),
        ];
        let access = volume.read_only.then(|| "--readonly".to_string());
        let line = shell_line(words.into_iter().chain(paths).chain(access));
        eprintln!("sietch: Start this before: {line}");
    }
}

/// A line of words for a POSIX shell.
pub(crate) fn shell_line(words: impl IntoIterator<Item = String>) -> String {
    let words = words.into_iter().map(|word| shell_quoted(&word));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes an argument for a POSIX shell if it needs it.
pub(crate) fn shell_quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_string();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(shell_quoted("a=b,c"), "a=b,c");
        assert_eq!(shell_quoted("it's a b"), r"'it'\''s a b'");
        assert_eq!(shell_quoted(""), "''");
    }
}
