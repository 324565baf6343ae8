//! A machine that runs.
//!
//! COM1 is QEMU's standard input and output, which the owner takes as pipes, and with them
//! the machine's streams. COM2 goes to a log file and, while somebody is connected, to a
//! socket.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::TERMINATE;
use crate::args::network;
use crate::error::Error;
use crate::machine::{Forwarder, Machine, Origin, Stdio};
use crate::passt::{Passt, Wire};
use crate::program::{Acceleration, Qemu};
use crate::qmp::Qmp;
use crate::report::Report;
use crate::streams::{Listeners, Streams};
use crate::virtiofsd::Virtiofsd;
use crate::{snapshot, starter, tap};

/// How often a wait with a deadline looks.
const POLL: Duration = Duration::from_millis(10);

/// QEMU listens before it has set its devices up.
const QMP_PATIENCE: Duration = Duration::from_secs(10);
const QMP_POLL: Duration = Duration::from_millis(1);

/// A running machine. Dropping it ends QEMU, and so does the end of this process.
#[derive(Debug)]
pub struct Vm {
    child: Child,
    machine: Machine,
    /// Serves the network until QEMU has ended.
    passt: Option<Passt>,
    /// Serve folders until QEMU has ended.
    folders: Vec<Virtiofsd>,
    /// The connection over which one that stands was told where it begins.
    loader: Option<Qmp>,
}

/// The pipes to a machine's COM1, its streams, and what QEMU itself complains about.
#[derive(Debug)]
pub struct Console {
    /// What goes to COM1.
    pub input: ChildStdin,
    /// What comes from COM1.
    pub output: ChildStdout,
    /// The program's input and output, if the machine has [`Stdio::Ports`] and QEMU did not
    /// end at once.
    pub streams: Option<Streams>,
    /// QEMU's own messages.
    pub complaints: ChildStderr,
    /// What else the user should know: a sentence.
    pub note: Option<String>,
}

/// A machine whose folder is made and whose network is served, so that only QEMU is left to start. Who has locks that QEMU alone is
/// to inherit lets go of them by then: passt may live longer.
#[derive(Debug)]
pub struct Prepared {
    machine: Machine,
    acceleration: Acceleration,
    passt: Option<Passt>,
    /// QEMU's end of passt's wire.
    wire: Option<Wire>,
    folders: Vec<Virtiofsd>,
    note: Option<String>,
}

impl Prepared {
    /// Makes the machine's state folder, and starts passt if that leads its ports, of which one that boots has need at once.
    pub fn new(machine: &Machine) -> Result<Self, Error> {
        starter::look_ahead();
        let acceleration = Acceleration::choose(machine.accel)?;
        tap::check(machine)?;
        let log = machine.kernel_log();
        fs::create_dir_all(&machine.state)
            .and_then(|()| fs::write(&log, ""))
            .map_err(|source| Error::File { path: log, source })?;
        raise_open_files_limit();
        let folders = Virtiofsd::of_all(machine)?;
        let mut prepared = Self {
            machine: machine.clone(),
            acceleration,
            passt: None,
            wire: None,
            note: Virtiofsd::note(&folders),
            folders,
        };
        if machine.forwarder == Forwarder::Passt {
            match Passt::start(machine) {
                Ok((passt, wire)) => (prepared.passt, prepared.wire) = (Some(passt), wire),
                Err(error) => prepared.do_without_passt(&error.to_string()),
            }
        }
        if matches!(machine.origin, Origin::Boot) {
            // A machine that is ended while it boots may have written to a disk.
            prepared.wait_for_passt();
        }
        Ok(prepared)
    }

    /// From now on QEMU's own network serves.
    fn do_without_passt(&mut self, reason: &str) {
        (self.passt, self.wire) = (None, None);
        self.machine.forwarder = Forwarder::Qemu;
        self.note = Some(format!(
            "passt does not start ({reason}), so QEMU's own network serves the ports, a few connections at a time."
        ));
    }

    /// Waits until passt serves, if it is to.
    fn wait_for_passt(&mut self) {
        let ready = self.passt.as_mut().map_or(Ok(()), Passt::wait_until_ready);
        if let Err(reason) = ready {
            self.do_without_passt(&reason);
        }
    }

    /// Starts QEMU. A machine of a snapshot stands at first, and passt has as long to start.
    pub fn start(mut self, qemu: &Qemu) -> Result<(Vm, Console), Error> {
        let started = self.start_qemu(qemu)?;
        let was_to = self.machine.forwarder;
        self.wait_for_passt();
        let (mut vm, console) = match self.machine.forwarder == was_to {
            true => started,
            false => {
                drop(started);
                self.start_qemu(qemu)?
            }
        };
        vm.passt = self.passt;
        vm.folders = self.folders;
        let note = self.note;
        Ok((vm, Console { note, ..console }))
    }

    fn start_qemu(&mut self, qemu: &Qemu) -> Result<(Vm, Console), Error> {
        let machine = self.machine.clone();
        let listeners = match machine.stdio {
            Stdio::Serial => None,
            Stdio::Ports => Some(Listeners::bind(&machine.state).map_err(Error::Start)?),
        };
        let mut command = starter::bound_to_us(&qemu.path);
        let wire = self
            .wire
            .as_ref()
            .map(|wire| network::wire(wire.as_raw_fd()));
        command
            .args(machine.qemu_args(self.acceleration))
            .args(wire.into_iter().flatten())
            .stdin(process::Stdio::piped())
            .stdout(process::Stdio::piped())
            .stderr(process::Stdio::piped())
            // A Ctrl-C at the terminal is for us to pass on, not for QEMU.
            .process_group(0);
        let mut child = starter::start(command, self.wire.take()).map_err(Error::Start)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(complaints)) = pipes else {
            return Err(Error::Start(io::ErrorKind::BrokenPipe.into()));
        };
        let mut vm = Vm {
            child,
            machine,
            passt: None,
            folders: Vec::new(),
            loader: None,
        };
        let streams = listeners.and_then(|listeners| listeners.accept(|| vm.has_ended()));
        if let (Origin::Snapshot(folder), Some(_)) = (&vm.machine.origin, &streams) {
            let mut qmp = vm.qmp().map_err(Error::Start)?;
            snapshot::load(&mut qmp, folder)?;
            vm.loader = Some(qmp);
        }
        Ok((
            vm,
            Console {
                input,
                output,
                streams,
                complaints,
                note: None,
            },
        ))
    }
}

impl Vm {
    /// Starts QEMU in the machine's state folder, and passt before it if need be.
    pub fn start(qemu: &Qemu, machine: &Machine) -> Result<(Self, Console), Error> {
        Prepared::new(machine)?.start(qemu)
    }

    /// QEMU's process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The machine as it was started.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A connection to QEMU itself, which may be about to listen.
    pub(crate) fn qmp(&self) -> io::Result<Qmp> {
        let deadline = Instant::now() + QMP_PATIENCE;
        loop {
            match Qmp::connect(&self.machine.qmp_socket()) {
                Err(_) if Instant::now() < deadline => thread::sleep(QMP_POLL),
                result => return result,
            }
        }
    }

    /// Lets a machine run that began at a snapshot, and stands there.
    pub fn go_on(&mut self) -> io::Result<()> {
        match self.loader.take() {
            Some(mut qmp) => qmp.resume(),
            None => self.qmp()?.resume(),
        }
    }

    /// Asks the program to end, as `SIGTERM` does.
    pub fn terminate(&self) -> io::Result<()> {
        UnixStream::connect(self.machine.control_socket())?.write_all(&[TERMINATE])
    }

    /// Ends QEMU at once.
    pub fn kill(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
    }

    /// Whether QEMU has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until QEMU ends and reads what the kernel reported.
    pub fn wait(&mut self) -> io::Result<Report> {
        let status = self.child.wait()?;
        Ok(self.report(status))
    }

    /// Waits as [`Vm::wait`] does, but for `patience` only.
    pub fn wait_for(&mut self, patience: Duration) -> io::Result<Option<Report>> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(self.report(status)));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    fn report(&self, status: ExitStatus) -> Report {
        let log = fs::read(self.machine.kernel_log()).unwrap_or_default();
        Report::parse(&String::from_utf8_lossy(&log), status.code())
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// Lets QEMU open as many files as it may: each forwarded connection takes one.
fn raise_open_files_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it fails the machine works, with fewer connections.
    let _ = setrlimit(Resource::Nofile, limit);
}
