//! The two systems under comparison, booted alike.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::thread;
use std::time::{Duration, Instant};

use cli::flags::RunFlags;
use cli::machine_plan::{self, GuestConfig, Plan};
use qemu::{DiskBus, Machine, Qemu, Transcript, Vm, namespace};

use crate::{Kernel, OUTPUT};

/// How long a guest may take to serve.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long one attempt to connect may take; a guest that is not up does not answer.
const ATTEMPT: Duration = Duration::from_millis(20);
/// The unit of times in `/proc/PID/stat`, 1/100 s on every Linux (proc(5)).
const TICKS_PER_S: f64 = 100.0;

/// What runs in the guest beneath the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Debian's Linux kernel.
    Linux,
    /// The same with `mitigations=off` on its command line.
    Unmitigated,
    /// Sietch.
    Sietch,
}

impl System {
    /// In the order of a round, for figures in which mitigations have no part.
    pub const BOTH: [Self; 2] = [Self::Linux, Self::Sietch];
    /// In the order of a round.
    pub const ALL: [Self; 3] = [Self::Linux, Self::Unmitigated, Self::Sietch];

    /// Whether it is Linux, however it is started.
    pub fn is_linux(self) -> bool {
        self != Self::Sietch
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Unmitigated => "Linux, `mitigations=off`",
            Self::Sietch => "Sietch",
        }
    }

    /// Boots a program; `args` are flags, program and arguments of `sietch run`.
    pub fn boot(self, args: &[&str]) -> Result<Guest, String> {
        self.boot_on(args, |_| ())
    }

    /// Boots a program on a machine that `change` makes special.
    pub fn boot_on(
        self,
        args: &[&str],
        change: impl FnOnce(&mut Machine),
    ) -> Result<Guest, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let flags = self.flags(args)?;
        let around = GuestConfig::of(&flags).map_err(|error| text(&error))?;
        let plan = Plan::new(&flags.program, &around).map_err(|error| text(&error))?;
        let state = PathBuf::from(OUTPUT);
        let mut machine =
            machine_plan::machine(&flags, &plan, &state).map_err(|error| text(&error))?;
        if self.is_linux() {
            machine.kernel = Kernel::with(&flags).file();
        }
        if self == Self::Unmitigated {
            machine.command_line += " mitigations=off";
        }
        if self.is_linux() && machine.disks.iter().any(|disk| disk.bus == DiskBus::Nvme) {
            // Else a disk of one controller lies behind another that chooses among several.
            machine.command_line += " nvme_core.multipath=N";
        }
        change(&mut machine);
        if !namespace::suit(machine.nic) {
            return Err("the tap interface for the card cannot be made.".into());
        }
        fs::create_dir_all(&state)
            .and_then(|()| fs::write(&machine.initrd, &plan.image))
            .map_err(|error| text(&error))?;
        let qemu = Qemu::find().map_err(|error| text(&error))?;
        let started = Instant::now();
        let (vm, console) = Vm::start(&qemu, &machine).map_err(|error| text(&error))?;
        Ok(Guest {
            vm,
            started,
            output: Transcript::of(console.output),
            complaints: Transcript::of(console.complaints),
            _input: console.input,
        })
    }

    fn flags(self, args: &[&str]) -> Result<RunFlags, String> {
        let tap = format!("tap={}", namespace::TAP);
        let mut line = vec!["sietch", "run", "--accel", "tcg", "--net", &tap];
        line.extend(["--ip", namespace::MACHINE_FLAG]);
        line.extend(args);
        let mut flags = RunFlags::of_line(line)?;
        if self.is_linux() {
            let additions = Kernel::with(&flags).additions();
            flags.program.add.extend(additions);
        }
        Ok(flags)
    }
}

/// A running guest. Dropping it ends it.
pub struct Guest {
    vm: Vm,
    started: Instant,
    output: Transcript,
    complaints: Transcript,
    /// Held so that the program's input does not end.
    _input: ChildStdin,
}

impl Guest {
    /// Where the guest's port is.
    pub fn address(port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(namespace::MACHINE), port)
    }

    /// Waits until a TCP port answers to `ask`; the time since the start of QEMU.
    pub fn wait_for_answer(&mut self, port: u16, ask: &[u8]) -> Result<Duration, String> {
        self.wait_for_answer_at(namespace::MACHINE, port, ask)
    }

    /// The same at another of its addresses.
    pub fn wait_for_answer_at(
        &mut self,
        host: Ipv4Addr,
        port: u16,
        ask: &[u8],
    ) -> Result<Duration, String> {
        self.wait_until("answer", || answers((host, port).into(), ask))
    }

    /// Waits until the guest does `what`, of which `is_done` tells; the time since the start
    /// of QEMU.
    pub fn wait_until(
        &mut self,
        what: &str,
        mut is_done: impl FnMut() -> bool,
    ) -> Result<Duration, String> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if is_done() {
                return Ok(self.started.elapsed());
            }
            if self.vm.has_ended() {
                return Err(format!("the machine ended: {}", self.last_words()));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(format!("the guest did not {what}: {}", self.last_words()))
    }

    /// Waits until the machine ends by itself; what its program wrote.
    pub fn wait_for_end(mut self, patience: Duration) -> Result<String, String> {
        match self.vm.wait_for(patience) {
            Ok(Some(_)) => {
                self.output.wait_for_end(patience);
                Ok(self.output.text())
            }
            _ => Err(format!("the machine did not end: {}", self.last_words())),
        }
    }

    /// Waits until `find` finds something in what its program has written.
    pub fn find_in_output<T>(
        &mut self,
        what: &str,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, String> {
        let output = self.output.clone();
        self.wait_until(what, || find(&output.text()).is_some())?;
        find(&output.text()).ok_or_else(|| self.last_words())
    }

    /// The kernel that runs.
    pub fn kernel(&self) -> &Path {
        &self.vm.machine().kernel
    }

    /// The last lines that QEMU, the program and the kernel wrote.
    pub fn last_words(&self) -> String {
        let log = fs::read_to_string(self.vm.machine().kernel_log()).unwrap_or_default();
        let words = [self.complaints.text(), self.output.text(), log].concat();
        // A panic's message says more than the addresses that follow it.
        let is_word = |line: &&str| !line.starts_with("sietch: frame ");
        let lines: Vec<&str> = words.lines().filter(is_word).collect();
        lines[lines.len().saturating_sub(6)..].join(" | ")
    }

    /// Seconds of the host's CPUs that QEMU has used.
    pub fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.vm.pid()));
        let stat = stat.unwrap_or_default();
        // The fields after the name, which is in parentheses, start with the third.
        let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        let ticks: f64 = fields
            .skip(11)
            .take(2)
            .filter_map(|text| text.parse::<f64>().ok())
            .sum();
        ticks / TICKS_PER_S
    }

    /// MiB of the host's memory that QEMU holds.
    pub fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.vm.pid()));
        let status = status.unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap_or("");
        let kib = line
            .split_whitespace()
            .next()
            .and_then(|text| text.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    }
}

/// Whether a TCP port of the guest answers to `ask` right now.
fn answers(port: SocketAddr, ask: &[u8]) -> bool {
    let answer = TcpStream::connect_timeout(&port, ATTEMPT).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(ask)?;
        stream.read(&mut [0; 1])
    });
    matches!(answer, Ok(1))
}
