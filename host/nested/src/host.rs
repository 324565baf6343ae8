//! The Linux with KVM, and its shell.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command as Process};
use std::time::Duration;

use cli::flags::{Addition, RunFlags};
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{Qemu, Transcript, Vm};

use crate::guest::{Guest, TAP};

/// The host's kernel, its modules and its init, as `tools/linux-guest.sh` leaves them.
const LINUX: &str = "build/linux-kvm";
/// What Debian's QEMU reads when it starts a PC.
const FIRMWARE: [&str; 6] = [
    "/usr/share/seabios/bios-256k.bin",
    "/usr/share/seabios/bios-microvm.bin",
    "/usr/share/qemu/kvmvapic.bin",
    "/usr/share/qemu/linuxboot_dma.bin",
    "/usr/share/qemu/pvh.bin",
    "/usr/share/qemu/qboot.rom",
];
/// What every host has beside its guests and what a caller adds.
const PROGRAMS: [&str; 1] = ["qemu-system-x86_64"];
/// The first program: a shell that is not interactive, so that it echoes nothing.
const SHELL: &str = "echo ready; exec busybox sh /dev/ttyS0";
const READY: &str = "ready\n";
/// How long the host may take to its shell's first words.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running host. Dropping it ends it.
pub struct Host {
    _vm: Vm,
    input: ChildStdin,
    output: Transcript,
    complaints: Transcript,
    /// Bytes of the output that belong to earlier scripts.
    read: usize,
    scripts: u32,
}

impl Host {
    /// Boots a host with `programs` and what `guests` need, in the folder `output`.
    ///
    /// Errors: a sentence.
    pub fn boot<'a>(
        output: &Path,
        programs: &[&str],
        guests: impl IntoIterator<Item = &'a Guest>,
    ) -> Result<Self, String> {
        prepare()?;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let line = "sietch run --accel tcg -m 3G --cpus 2 --net none \
                    --kernel-option mitigations=off busybox sh -c";
        // The console is set up when it speaks first; what comes earlier would be lost.
        let line = line.split_whitespace().chain([SHELL]);
        let mut flags = RunFlags::of_line(line)?;
        flags.program.add = additions(programs, guests)?;
        let around = GuestConfig::of(&flags).map_err(|error| text(&error))?;
        let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
        let mut machine =
            machine_plan::machine(&flags, &plan, output).map_err(|error| text(&error))?;
        machine.kernel = Path::new(LINUX).join("vmlinuz");
        fs::create_dir_all(output)
            .and_then(|()| fs::write(&machine.initrd, &plan.image))
            .map_err(|error| format!("{}: {error}", output.display()))?;
        let qemu = Qemu::find().map_err(|error| text(&error))?;
        let (vm, console) = Vm::start(&qemu, &machine).map_err(|error| text(&error))?;
        let mut host = Self {
            _vm: vm,
            input: console.input,
            output: Transcript::of(console.output),
            complaints: Transcript::of(console.complaints),
            read: 0,
            scripts: 0,
        };
        if !host.output.wait_for(READY, PATIENCE) {
            return Err(format!(
                "the host did not start: {}",
                host.complaints.text()
            ));
        }
        host.read = host.output.text().len();
        host.run(&set_up(), PATIENCE)?;
        Ok(host)
    }

    /// Runs a shell's script in the host and returns what it wrote. No line may have more than
    /// 4000 bytes.
    ///
    /// Errors: what it wrote, if it fails or does not end within `patience`.
    pub fn run(&mut self, script: &str, patience: Duration) -> Result<String, String> {
        self.scripts += 1;
        let mark = format!("script {} ended\n", self.scripts);
        // The mark is put together by the shell, so that no echo of the script looks like it.
        let line = format!(
            "{{\n{script}\n}} 2>&1; echo \"status $?\"; echo \"script\" \"{} ended\"\n",
            self.scripts
        );
        self.input
            .write_all(line.as_bytes())
            .map_err(|error| format!("the host's console: {error}"))?;
        let heard = self.output.wait_for(&mark, patience);
        let all = self.output.text();
        let fresh = all.get(self.read..).unwrap_or("");
        let ended = fresh.split_once(&mark).filter(|_| heard);
        let Some((said, status)) = ended.and_then(|(said, _)| said.rsplit_once("status ")) else {
            let complaints = self.complaints.text();
            return Err(format!(
                "the host did not end a script in time: {fresh}{complaints}"
            ));
        };
        self.read = all.len();
        match status.trim() {
            "0" => Ok(said.into()),
            _ => Err(format!("a script failed: {said}")),
        }
    }

    /// Starts a guest; its QEMU's process number stands in `/tmp/NAME/pid`.
    ///
    /// Errors: as [`Host::run`].
    pub fn start(&mut self, guest: &Guest) -> Result<(), String> {
        let name = guest.name();
        let script = format!(
            "rm -rf /tmp/{name}; mkdir -p /tmp/{name}; sh /guests/{name}/start & echo $! >/tmp/{name}/pid"
        );
        self.run(&script, PATIENCE).map(drop)
    }

    /// Ends a guest.
    ///
    /// Errors: as [`Host::run`].
    pub fn stop(&mut self, guest: &Guest) -> Result<(), String> {
        let name = guest.name();
        let script = format!(
            "kill -9 $(cat /tmp/{name}/pid); while kill -0 $(cat /tmp/{name}/pid) 2>/dev/null; do usleep 10000; done; true"
        );
        self.run(&script, PATIENCE).map(drop)
    }
}

/// Makes the kernels of the host and of guests ready; a second time costs nothing. [`Host::boot`] does that, too,
/// but where it is called there may be no network.
///
/// Errors: a sentence.
pub fn prepare() -> Result<(), String> {
    for kind in ["cloud", "kvm"] {
        let status = Process::new("tools/linux-guest.sh").arg(kind).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("Debian's Linux cannot be prepared: see above.".into());
        }
    }
    Ok(())
}

fn additions<'a>(
    programs: &[&str],
    guests: impl IntoIterator<Item = &'a Guest>,
) -> Result<Vec<Addition>, String> {
    let same = |path: PathBuf| Addition {
        host: path.clone(),
        guest: path,
    };
    let find = |name: &&str| {
        let found = cli::pack::program::find(name).map_err(|error| error.to_string())?;
        let name = found.file_name().unwrap_or_default();
        Ok(Addition {
            guest: Path::new("/usr/bin").join(name),
            host: found,
        })
    };
    let mut all = PROGRAMS
        .iter()
        .chain(programs)
        .map(find)
        .collect::<Result<Vec<_>, String>>()?;
    all.extend(FIRMWARE.map(|path| same(path.into())));
    for guest in guests {
        let files = guest.files.iter().cloned();
        all.extend(files.map(|(host, guest)| Addition { host, guest }));
    }
    all.extend(["init", "modules"].map(|name| Addition {
        host: Path::new(LINUX).join(name),
        guest: Path::new("/").join(name),
    }));
    Ok(all)
}

/// The network to the guests, and the file systems in which KVM counts.
fn set_up() -> String {
    format!(
        "mount -t tracefs none /sys/kernel/tracing\nmount -t debugfs none /sys/kernel/debug\n\
         mkdir -p /dev/net; ip link set lo up\ntunctl -t {TAP} >/dev/null\n\
         ip address add 10.0.2.2/24 dev {TAP}\nip link set {TAP} up\ntest -e /dev/kvm"
    )
}
