//! A shell in the guest that the host types into: when a command has ended, nothing runs in the guest
//! but what it has left in the background.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
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
        })
    }

    /// Mounts the second disk at `/mnt`; Linux gets for both the scheduler that costs it least.
    pub fn mount(&mut self, system: System, bus: Bus) -> Result<(), String> {
        if system.is_linux() {
            for device in [bus.raw(), bus.ext4()] {
                // It looks for disks in the background.
                self.run(&format!(
                    "for turn in $(busybox seq 100); do [ -e /sys/block/{device} ] || busybox sleep 0.1; done"
                ))?;
                self.run(&format!("echo none > /sys/block/{device}/queue/scheduler"))?;
            }
        }
        self.run(&format!(
            "mkdir -p /mnt; busybox mount -t ext4 /dev/{} /mnt",
            bus.ext4()
        ))
        .map(drop)
    }

    /// Waits until a server of the guest's answers `ask` at `port`.
    pub fn wait_for_answer(&mut self, port: u16, ask: &[u8]) -> Result<(), String> {
        self.guest.wait_for_answer(port, ask).map(drop)
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
    for disk in disks {
        args.extend(["--disk", disk]);
    }
    args.extend(["busybox", "sh", "-c", script]);
    args
}
