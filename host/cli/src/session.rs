//! A machine in the foreground: console, keys, signals and status pass through.
//!
//! Threads feed one queue of events, which the session's owner drains:
//!
//! - output: COM1 to standard output and to the console log, until QEMU closes it;
//! - input: standard input to COM1;
//! - signals: SIGINT, SIGTERM and SIGHUP, which are for the program;
//! - trace: the kernel's lines to standard error, if the user wants system calls.
//!
//! At a terminal Ctrl-C is a key like any other: the machine's line discipline makes
//! a signal of it. Three within a second end the machine by force. Elsewhere the first
//! signal asks the program to end, the second ends the machine.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use qemu::report::Report;
use qemu::{Console, Machine, Qemu, Vm};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::terminal;

/// What Ctrl-C sends at a terminal in raw mode.
const CTRL_C: u8 = 3;
/// What ends a file at a terminal.
const CTRL_D: u8 = 4;
/// As many Ctrl-C within [`INSISTENCE`] end the machine.
const INSISTENT_PRESSES: usize = 3;
const INSISTENCE: Duration = Duration::from_secs(1);
/// How long a program may take to end after it was asked.
const PATIENCE: Duration = Duration::from_secs(10);
/// How a line about a system call starts; a thread's number follows.
const TRACE_LINE: &[u8] = b"sietch: [";
/// How often the kernel's log is looked at while it is shown.
const TRACE_POLL: Duration = Duration::from_millis(20);

enum Event {
    /// QEMU closed the console.
    Ended,
    /// The program should end.
    Terminate,
    /// The machine should end now.
    Kill,
}

/// A machine that runs in the foreground.
#[derive(Debug)]
pub struct Session {
    vm: Vm,
    events: Receiver<Event>,
    sender: Sender<Event>,
    complaints: qemu::Transcript,
    trace: Option<thread::JoinHandle<()>>,
}

impl Session {
    /// Starts the machine and the threads that serve it.
    pub fn start(qemu: &Qemu, machine: &Machine, console_log: &Path) -> Result<Self, Failure> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(console_log);
        let log = log.map_err(Failure::file(console_log))?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::Lost)?;
        let (vm, console) = Vm::start(qemu, machine)?;
        let (sender, events) = channel();
        let Console {
            input,
            output,
            complaints,
        } = console;
        let for_output = sender.clone();
        thread::spawn(move || {
            copy_output(output, log);
            let _ = for_output.send(Event::Ended);
        });
        let for_input = sender.clone();
        thread::spawn(move || copy_input(input, &for_input));
        let for_signals = sender.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                let _ = for_signals.send(Event::Terminate);
            }
        });
        let complaints = qemu::Transcript::of(complaints);
        Ok(Self {
            vm,
            events,
            sender,
            complaints,
            trace: None,
        })
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.vm.pid()
    }

    /// Shows the kernel's words on standard error while the machine runs.
    pub fn show_trace(&mut self) {
        let path = self.vm.machine().kernel_log();
        let pid = self.vm.pid();
        self.trace = Some(thread::spawn(move || copy_trace(&path, pid)));
    }

    /// Serves the machine until it ends.
    pub fn serve(mut self) -> Result<(Report, String), Failure> {
        let mut deadline: Option<Instant> = None;
        loop {
            match self.next_event(deadline) {
                Event::Ended => break,
                Event::Kill => self.vm.kill(),
                Event::Terminate if deadline.is_some() => self.vm.kill(),
                Event::Terminate => {
                    deadline = Some(Instant::now() + PATIENCE);
                    if self.vm.terminate().is_err() {
                        self.vm.kill();
                    }
                }
            }
        }
        let report = self.vm.wait().map_err(Failure::Lost)?;
        if let Some(trace) = self.trace.take() {
            let _ = trace.join();
        }
        drop(self.sender);
        Ok((report, self.complaints.text()))
    }

    fn next_event(&self, deadline: Option<Instant>) -> Event {
        let Some(deadline) = deadline else {
            return self.events.recv().unwrap_or(Event::Kill);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Event::Kill,
        }
    }
}

/// Copies the console out. The log goes on when nobody reads our output any more.
fn copy_output(mut output: impl Read, mut log: File) {
    let mut stdout = io::stdout();
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = output.read(&mut buffer) {
        let _ = stdout
            .write_all(&buffer[..len])
            .and_then(|()| stdout.flush());
        let _ = log.write_all(&buffer[..len]);
    }
}

/// Copies keys in, and watches for an insistent Ctrl-C.
fn copy_input(mut input: impl Write, events: &Sender<Event>) {
    let is_terminal = terminal::is_terminal();
    let mut presses: Vec<Instant> = Vec::new();
    let mut stdin = io::stdin();
    let mut buffer = [0; 1024];
    loop {
        let len = stdin.read(&mut buffer).unwrap_or(0);
        if len == 0 {
            let _ = input.write_all(&[CTRL_D]).and_then(|()| input.flush());
            // The pipe stays open: QEMU's console needs its other end.
            thread::park();
        }
        let keys = &buffer[..len];
        if is_terminal {
            let now = Instant::now();
            presses.retain(|&press| now.duration_since(press) < INSISTENCE);
            presses.extend(keys.iter().filter(|&&key| key == CTRL_C).map(|_| now));
            if presses.len() >= INSISTENT_PRESSES {
                let _ = events.send(Event::Kill);
            }
        }
        if input.write_all(keys).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Copies the lines about system calls from the kernel's log to standard error.
fn copy_trace(path: &Path, qemu_pid: u32) {
    let Ok(file) = File::open(path) else {
        return;
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        let has_ended = !Path::new(&format!("/proc/{qemu_pid}/fd/0")).exists();
        // An incomplete line stays in `line`, and the next read completes it.
        while reader.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            if !line.ends_with(b"\n") && !has_ended {
                break;
            }
            if line.starts_with(TRACE_LINE) {
                let _ = io::stderr().write_all(&line[TRACE_LINE.len() - 1..]);
            }
            line.clear();
        }
        if has_ended {
            return;
        }
        thread::sleep(TRACE_POLL);
    }
}
