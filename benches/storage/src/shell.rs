//! A shell in the guest that the host types into: when a command has ended, nothing runs in the guest.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use bench_pair::names::{self, Names};
use bench_pair::{Guest, System, counter};

const PORT: u16 = 7;
/// What one command may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// What the guest runs: Linux sends its symbols first, as modules lie elsewhere at each boot.
const SHELL: &str = "while :; do busybox nc -l -p 7 -e /bin/sh; done";
const PROGRAMS: [&str; 6] = [
    "-m",
    "1G",
    "--add",
    "/usr/bin/fio:/usr/bin/fio",
    "--add",
    "/bin/busybox:/bin/sh",
];

/// The guest and the connection to its shell.
pub struct Shell {
    guest: Guest,
    stream: BufReader<TcpStream>,
}

impl Shell {
    /// Boots a guest with disks whose instructions are counted, and the names of its kernel's functions.
    pub fn counted(system: System, disks: &[String]) -> Result<(Self, Names), String> {
        let script = match system {
            System::Sietch => SHELL.to_string(),
            _ => format!("busybox nc -l -p {} </proc/kallsyms; {SHELL}", names::PORT),
        };
        let mut guest = counter::boot(system, &args(disks, &script))?;
        let names = match system {
            System::Sietch => Names::of_sietch(guest.kernel())?,
            _ => Names::of_linux(&mut guest)?,
        };
        Ok((Self::of(guest)?, names))
    }

    /// Boots a guest with a disk as fast as it can be.
    pub fn fast(system: System, disk: &str) -> Result<Self, String> {
        Self::of(system.boot(&args(&[disk.to_string()], SHELL))?)
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

    /// Runs a command; what it wrote.
    pub fn run(&mut self, command: &str) -> Result<String, String> {
        let line = format!("{command} 2>&1; echo \"status=$?\"\n");
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

fn args<'a>(disks: &'a [String], script: &'a str) -> Vec<&'a str> {
    let mut args = PROGRAMS.to_vec();
    for disk in disks {
        args.extend(["--disk", disk]);
    }
    args.extend(["busybox", "sh", "-c", script]);
    args
}
