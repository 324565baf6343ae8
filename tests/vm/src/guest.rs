//! A machine under test: the command `sietch run` as a child process.

use std::env;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use qemu::Transcript;
use rustix::process::{Pid, Signal, kill_process};

use crate::network::Network;

/// How long a program may take from the start of QEMU to its first word. Emulated
/// machines share a busy host.
pub const BOOT_PATIENCE: Duration = Duration::from_secs(60);
/// Debian's kernel, where `tools/linux-guest.sh` puts it.
const LINUX: &str = "build/linux/vmlinuz";
/// Where cargo puts ours.
const OURS: &str = "target/x86_64-unknown-none/release/sietch-kernel";
/// How long a program may take to end when asked.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How long one attempt to connect may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// As much of the console as a failure shows.
const SHOWN_LINES: usize = 15;

/// What else the host does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// It has other work.
    Busy,
    /// It has none.
    Quiet,
}

impl Host {
    fn parse(word: &str) -> Result<Self, String> {
        match word {
            "busy" => Ok(Self::Busy),
            "quiet" => Ok(Self::Quiet),
            _ => Err(format!("--host is busy or quiet, not {word}.")),
        }
    }
}

/// What all machines of a run have in common.
#[derive(Clone, Debug)]
pub struct Setup {
    cpus: String,
    accel: &'static str,
    board: String,
    nic: String,
    is_linux: bool,
    is_long: bool,
    host: Option<Host>,
    network: Network,
}

impl Setup {
    /// Reads the program's arguments: the setup, and words that choose tests.
    pub fn from_args(
        mut args: impl Iterator<Item = String>,
    ) -> Result<(Self, Vec<String>), String> {
        let mut setup = Self {
            cpus: "2".into(),
            accel: "tcg",
            board: "q35".into(),
            nic: "virtio".into(),
            is_linux: false,
            is_long: false,
            host: None,
            network: Network::of_this_process(),
        };
        let mut words = Vec::new();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value."));
            match arg.as_str() {
                "--cpus" => setup.cpus = value()?,
                "--machine" => setup.board = value()?,
                "--nic" => setup.nic = value()?,
                "--host" => setup.host = Some(Host::parse(&value()?)?),
                "--long" => setup.is_long = true,
                "--linux" => setup.is_linux = true,
                _ => words.push(arg),
            }
        }
        Ok((setup, words))
    }

    /// The same machine with another network card.
    pub fn with_nic(&self, nic: &str) -> Self {
        Self {
            nic: nic.into(),
            ..self.clone()
        }
    }

    /// The same machine with so many CPUs.
    pub fn with_cpus(&self, cpus: &str) -> Self {
        Self {
            cpus: cpus.into(),
            ..self.clone()
        }
    }

    /// The same machine with one CPU, whose clock counts instructions.
    pub fn counted(&self) -> Self {
        Self {
            accel: "tcg-counted",
            cpus: "1".into(),
            ..self.clone()
        }
    }

    /// Whether our kernel is reached by frames, not through QEMU's own network.
    pub fn has_tap(&self) -> bool {
        self.network == Network::Tap && !self.is_linux
    }

    /// Whether our kernel runs on a board with PCI slots.
    pub fn has_our_pci(&self) -> bool {
        self.board == "q35" && !self.is_linux
    }

    /// Whether our kernel has a card with a pair of queues for each of several CPUs. The
    /// 82576 has them by itself, virtio's card as many as the host's end.
    pub fn has_rings(&self) -> bool {
        let has_queues = match self.nic.as_str() {
            "virtio" => self.network == Network::Tap,
            nic => nic == "igb",
        };
        self.has_our_pci() && has_queues && !self.is_single()
    }

    /// Whether machines have an address that the host reaches.
    pub fn has_address(&self) -> bool {
        self.network == Network::Tap
    }

    /// Whether the board can have more than one NUMA node.
    pub fn has_nodes(&self) -> bool {
        self.board == "q35"
    }

    /// How many CPUs machines have.
    pub fn cpus(&self) -> &str {
        &self.cpus
    }

    /// Whether machines have one CPU.
    pub fn is_single(&self) -> bool {
        self.cpus == "1"
    }

    /// Of what kind the tests are, if not of both.
    pub fn host(&self) -> Option<Host> {
        self.host
    }

    /// Whether tests with a short form take their long one.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether the tests run on Linux, to see whether they ask for the right thing.
    pub fn is_linux(&self) -> bool {
        self.is_linux
    }

    /// The kernel that machines run.
    pub fn kernel(&self) -> PathBuf {
        let named = env::var_os("SIETCH_KERNEL").map(PathBuf::from);
        match self.is_linux {
            true => LINUX.into(),
            false => named.unwrap_or_else(|| OURS.into()),
        }
    }

    /// The command `sietch run` with the setup's flags and `args`.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = sietch();
        command.args([
            "run",
            "--accel",
            self.accel,
            "--cpus",
            &self.cpus,
            "--machine",
            &self.board,
            "--nic",
            &self.nic,
        ]);
        if self.is_linux {
            command.env("SIETCH_KERNEL", LINUX);
            command.args(["--add", "build/linux/init:/init"]);
            command.args(["--add", "build/linux/modules:/modules"]);
        }
        command.args(args);
        command
    }

    /// Starts a machine whose program serves a TCP port, and says where it is reached.
    pub fn serve(&self, port: u16, args: &[&str]) -> Result<(Guest, SocketAddr), String> {
        let reached = self.network.address_of(port, &self.nic)?;
        let flags = self.network.flags(port, reached);
        let flags: Vec<&str> = flags
            .iter()
            .map(String::as_str)
            .chain(args.iter().copied())
            .collect();
        Ok((self.start(&flags)?, reached))
    }

    /// Starts a machine with the flags, program and arguments of `sietch run`.
    pub fn start(&self, args: &[&str]) -> Result<Guest, String> {
        Guest::of(self.command(args))
    }
}

/// The command under test, built beside this program. Its machines live in a folder of
/// this run, so that two runs at once do not share names.
pub fn sietch() -> Command {
    let this = env::current_exe().unwrap_or_default();
    let mut command = Command::new(this.with_file_name("sietch"));
    command.env("XDG_RUNTIME_DIR", state_folder());
    command.env("XDG_DATA_HOME", state_folder());
    command
}

/// Where this run's machines live, and what it writes for them.
pub fn state_folder() -> PathBuf {
    env::temp_dir().join(format!("sietch-tests-{}", std::process::id()))
}

/// A new file of this run for its machines.
pub fn write_file(name: &str, bytes: impl AsRef<[u8]>) -> Result<String, String> {
    let path = state_folder().join(name);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// A running machine. Dropping it ends it.
pub struct Guest {
    child: Child,
    input: ChildStdin,
    console: Transcript,
}

/// How a machine ended.
pub struct End {
    /// The exit status of `sietch run`.
    pub status: i32,
    /// What the program wrote and the command said.
    pub console: String,
}

impl Guest {
    /// The machine that a command of [`Setup::command`] starts.
    pub fn of(mut command: Command) -> Result<Self, String> {
        let mut start = || {
            // One pipe for all that is said, so that it stays in order.
            let (output, writer) = io::pipe()?;
            command.stdin(Stdio::piped());
            command.stdout(writer.try_clone()?).stderr(writer);
            let mut child = command.spawn()?;
            let input = child.stdin.take().ok_or(ErrorKind::BrokenPipe)?;
            Ok::<_, io::Error>(Self {
                child,
                input,
                console: Transcript::of(output),
            })
        };
        start().map_err(|error| format!("sietch does not start: {error}"))
    }

    /// The command's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the command without warning; its machine is nobody's then.
    pub fn kill(&mut self) -> Result<(), String> {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map(drop).map_err(|error| error.to_string())
    }

    /// Waits until the program has written `needle`.
    pub fn expect(&self, needle: &str, patience: Duration) -> Result<(), String> {
        match self.console.wait_for(needle, patience) {
            true => Ok(()),
            false => Err(self.explain(&format!("never wrote `{needle}`"))),
        }
    }

    /// Waits until somebody at `address` answers to `ask`. QEMU itself accepts early
    /// at a forwarded port, so an accepted connection alone proves nothing.
    pub fn expect_answer(&self, address: SocketAddr, ask: &[u8]) -> Result<(), String> {
        let deadline = Instant::now() + BOOT_PATIENCE;
        while Instant::now() < deadline {
            let answer =
                TcpStream::connect_timeout(&address, CONNECT_PATIENCE).and_then(|mut stream| {
                    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
                    stream.write_all(ask)?;
                    stream.read(&mut [0; 1])
                });
            if matches!(answer, Ok(1)) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        Err(self.explain(&format!("does not answer at {address}")))
    }

    /// Types into the console.
    pub fn type_text(&mut self, text: &str) -> Result<(), String> {
        let typed = self
            .input
            .write_all(text.as_bytes())
            .and_then(|()| self.input.flush());
        typed.map_err(|error| self.explain(&format!("cannot be typed to ({error})")))
    }

    /// Waits until the machine ends.
    pub fn wait(mut self, patience: Duration) -> Result<End, String> {
        match self.wait_until_end(patience) {
            Some(status) => Ok(End {
                status,
                console: self.console(),
            }),
            None => Err(self.explain("did not end")),
        }
    }

    /// The status of `sietch run` once it ended, unless that takes too long.
    pub fn wait_until_end(&mut self, patience: Duration) -> Option<i32> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                // The pipe may still hold the last words.
                self.console.wait_for_end(END_PATIENCE);
                return Some(status.code().unwrap_or(-1));
            }
            thread::sleep(POLL);
        }
        None
    }

    /// What the program has written and the command has said so far.
    pub fn console(&self) -> String {
        self.console.text()
    }

    /// Asks the program to end and waits for it.
    pub fn stop(self) -> Result<End, String> {
        terminate(&self.child);
        self.wait(END_PATIENCE)
    }

    /// `why` with the last words of program and command.
    pub fn explain(&self, why: &str) -> String {
        let console = self.console.text();
        let lines: Vec<&str> = console.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        format!("the machine {why}\n     | {}", shown.join("\n     | "))
    }

    /// The process of the machine, which is a child of the command's.
    pub fn qemu(&self) -> Option<Pid> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let children =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
        let children: Vec<String> = tasks.flatten().flat_map(children).collect();
        let is_qemu = |pid: &&str| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.starts_with("qemu"))
        };
        let mut pids = children.iter().flat_map(|pids| pids.split_whitespace());
        Pid::from_raw(pids.find(is_qemu)?.parse().ok()?)
    }
}

/// Asks the command to end.
pub fn terminate(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended already, which is as good.
        let _ = kill_process(pid, Signal::TERM);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The second signal makes the command end its machine by force.
        for _ in 0..2 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            terminate(&self.child);
            thread::sleep(Duration::from_millis(200));
        }
        let _ = self.child.wait();
    }
}
