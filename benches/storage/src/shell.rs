//! A shell in the guest that the host types into: when a command has ended, nothing runs in the guest
//! but what it has left in the background.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use bench_pair::names::{self, Names};
use bench_pair::{Guest, System, counter};

use crate::disk::Bus;

const PORT: u16 = 7;
/// What one command may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the guest runs: Linux sends its symbols first, as modules lie elsewhere at each boot.
const SHELL: &str = "while :; do busybox nc -l -p 7 -e /bin/sh; done";
/// The machine, and what is in it.
const MACHINE: [&str; 4] = ["-m", "1G", "--add", "/bin/busybox:/bin/sh"];

/// The guest and the connection to its shell.
pub struct Shell {
    guest: Guest,
    stream: BufReader<TcpStream>,
    /// In `/dev`: the one that is as it is, and the one with ext4.
    disks: [String; 2],
}

impl Shell {
    /// Boots a guest with disks whose instructions are counted, and the names of its kernel's functions.
    pub fn counted(
        system: System,
        disks: &[String],
        programs: &[String],
    ) -> Result<(Self, Names), String> {
        let script = match system {
            System::Sietch => SHELL.to_string(),
            _ => format!("busybox nc -l -p {} </proc/kallsyms; {SHELL}", names::PORT),
        };
        let mut guest = counter::boot_as_it_is(system, &args(disks, programs, &script))?;
        let names = match system {
            System::Sietch => Names::of_sietch(guest.kernel())?,
            _ => Names::of_linux(&mut guest)?,
        };
        Ok((Self::of(guest)?, names))
    }

    /// Boots a guest with disks as fast as it can be.
    pub fn fast(system: System, disks: &[String], programs: &[String]) -> Result<Self, String> {
        Self::of(system.boot(&args(disks, programs, SHELL))?)
    }

    /// The same with more flags and a plugin of QEMU's translator.
    pub fn watched(
        system: System,
        flags: &[&str],
        disks: &[String],
        programs: &[String],
        plugin: String,
    ) -> Result<Self, String> {
        let args = [flags, &args(disks, programs, SHELL)].concat();
        Self::of(system.boot_on(&args, |machine| machine.plugin = Some(plugin))?)
    }

    fn of(mut guest: Guest) -> Result<Self, String> {
        let mut stream = None;
        guest.wait_until("offer its shell", || {
            stream = TcpStream::connect(Guest::address(PORT)).ok();
            stream.is_some()
        })?;
        let stream = stream.ok_or("no shell")?;
        let patient = stream.set_read_timeout(Some(PATIENCE));
        patient.map_err(|error| error.to_string())?;
        Ok(Self {
            guest,
            stream: BufReader::new(stream),
            disks: Default::default(),
        })
    }

    /// Finds the disks and mounts the second at `/mnt`; Linux gets for both the scheduler that costs it least.
    pub fn mount(&mut self, system: System, bus: Bus) -> Result<(), String> {
        self.disks = match (system.is_linux(), bus) {
            (true, Bus::Nvme) => [self.namespace(1)?, self.namespace(2)?],
            _ => bus.disks().map(String::from),
        };
        if system.is_linux() {
            for device in self.disks.clone() {
                self.run(&format!("echo none > /sys/block/{device}/queue/scheduler"))?;
            }
        }
        self.run("mkdir -p /mnt")?;
        self.mount_again()
    }

    /// Linux looks for namespaces in the background, and names them as they come.
    fn namespace(&mut self, number: u32) -> Result<String, String> {
        let found = self.run(&format!(
            "for turn in $(busybox seq 100); do for disk in /sys/block/nvme0n*; do if [ \"$(busybox cat $disk/nsid)\" = {number} ]; then echo ${{disk##*/}}; exit; fi; done; busybox sleep 0.1; done"
        ))?;
        let name = found.lines().last().filter(|name| name.starts_with("nvme"));
        name.map(str::to_string)
            .ok_or(format!("no namespace {number}: {found}"))
    }

    /// Mounts the second disk, which is not mounted.
    pub fn mount_again(&mut self) -> Result<(), String> {
        let [_, ext4] = &self.disks;
        let command = format!("busybox mount -t ext4 /dev/{ext4} /mnt");
        self.run(&command).map(drop)
    }

    /// The disk that is not mounted, in `/dev`.
    pub fn raw_disk(&self) -> &str {
        let [raw, _] = &self.disks;
        raw
    }

    /// Waits until a server of the guest's answers `ask` at an address of its.
    pub fn wait_for_answer(
        &mut self,
        (host, port): (Ipv4Addr, u16),
        ask: &[u8],
    ) -> Result<(), String> {
        self.guest.wait_for_answer_at(host, port, ask).map(drop)
    }

    /// Seconds of the host's CPUs that the machine has used.
    pub fn cpu_s(&self) -> f64 {
        self.guest.cpu_s()
    }

    /// Runs a command; what it wrote.
    pub fn run(&mut self, command: &str) -> Result<String, String> {
        // In a shell of its own, which may fail without an end of this one.
        let line = format!("( {command} ) 2>&1; echo \"status=$?\"\n");
        let failed = |error: std::io::Error| format!("{command}: {error}");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .map_err(failed)?;
        let mut said = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).map_err(failed)? == 0 {
                return Err(format!("{command}: {said}{}", self.guest.last_words()));
            }
            match line.trim_end().strip_prefix("status=") {
                Some("0") => return Ok(said),
                Some(_) => return Err(format!("{command}: {said}")),
                None => said += &line,
            }
        }
    }
}

fn args<'a>(disks: &'a [String], programs: &'a [String], script: &'a str) -> Vec<&'a str> {
    let mut args = MACHINE.to_vec();
    for program in programs {
        args.extend(["--add", program]);
    }
    // Programs that drive a virtual function are behind it.
    if disks.iter().any(|disk| disk.contains(",vf=")) {
        args.push("--iommu");
    }
    for disk in disks {
        args.extend(["--disk", disk]);
    }
    args.extend(["busybox", "sh", "-c", script]);
    args
}
