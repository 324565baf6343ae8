//! What runs in the host: an image, a kernel and the line that starts QEMU.

use std::fs;
use std::path::{Path, PathBuf};

use cli::flags::{Addition, RunFlags};
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Acceleration, namespace};

/// The tap interface of the host to which guests are tied. It has one queue: this machine has no
/// interface of that name that could have more (`qemu::tap` looks).
pub(crate) const TAP: &str = "nested0";
/// Where Debian's kernel for guests lies, as `tools/linux-guest.sh` leaves it.
const LINUX: &str = "build/linux";

/// What runs in a guest beneath the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Debian's Linux kernel.
    Linux,
    /// Sietch.
    Sietch,
}

/// A guest that the host can start.
#[derive(Debug)]
pub struct Guest {
    name: String,
    /// Files of this machine and where they are in the host.
    pub(crate) files: Vec<(PathBuf, PathBuf)>,
}

impl Guest {
    /// Prepares a guest: `args` are flags, program and arguments of `sietch run`, `options` are
    /// more words for QEMU. Its files are kept in the folder `output`.
    ///
    /// Errors: a sentence.
    pub fn new(
        output: &Path,
        name: &str,
        system: System,
        args: &[&str],
        options: &[&str],
    ) -> Result<Self, String> {
        let flags = flags(system, args)?;
        let around = GuestConfig::of(&flags).map_err(|error| error.to_string())?;
        let plan = Plan::new(&flags.program, &around).map_err(|error| error.to_string())?;
        let state = Path::new("/tmp").join(name);
        let mut machine =
            machine_plan::machine(&flags, &plan, &state).map_err(|error| error.to_string())?;
        let home = Path::new("/guests").join(name);
        let (kernel, kernel_in_host) = match system {
            System::Linux => (Path::new(LINUX).join("vmlinuz"), "/guests/linux"),
            System::Sietch => (machine.kernel, "/guests/sietch"),
        };
        machine.kernel = kernel_in_host.into();
        machine.initrd = home.join("image");
        let words = machine.qemu_args(Acceleration::Kvm);
        let words = words.iter().map(String::as_str);
        let start = start_script(name, words.chain(options.iter().copied()));
        let file = |suffix: &str| output.join(format!("{name}.{suffix}"));
        fs::create_dir_all(output)
            .and_then(|()| fs::write(file("image"), &plan.image))
            .and_then(|()| fs::write(file("start"), start))
            .map_err(|error| format!("{}: {error}", output.display()))?;
        let files = vec![
            (kernel, kernel_in_host.into()),
            (file("image"), home.join("image")),
            (file("start"), home.join("start")),
        ];
        Ok(Self {
            name: name.into(),
            files,
        })
    }

    /// The name that [`crate::Host::start`] takes.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn flags(system: System, args: &[&str]) -> Result<RunFlags, String> {
    let tap = format!("tap={TAP}");
    let mut line = vec!["sietch", "run", "--accel", "kvm", "--net", &tap];
    line.extend(["--ip", namespace::MACHINE_FLAG]);
    line.extend(args);
    let mut flags = RunFlags::of_line(line)?;
    if system == System::Linux {
        let additions = ["init", "modules"].map(|name| Addition {
            host: Path::new(LINUX).join(name),
            guest: Path::new("/").join(name),
        });
        flags.program.add.extend(additions);
    }
    Ok(flags)
}

/// A shell's script that becomes QEMU, with the guest's console in files. Its threads have names:
/// that of the first virtual CPU is `CPU 0/KVM`.
fn start_script<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> String {
    let quoted = words.map(|word| format!(" '{}'", word.replace('\'', "'\\''")));
    format!(
        "mkdir -p /tmp/{name}\nmkfifo /tmp/{name}/input\nexec 3<>/tmp/{name}/input\n\
         exec qemu-system-x86_64 -name {name},debug-threads=on{} <&3 >/tmp/{name}/output 2>/tmp/{name}/complaints\n",
        quoted.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_quotes_and_spaces_reach_qemu_as_they_are() {
        let script = start_script("g", ["-append", "a 'b'"].into_iter());
        assert!(script.contains("'-append' 'a '\\''b'\\''' <&3"), "{script}");
    }
}
