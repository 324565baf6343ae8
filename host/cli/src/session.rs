//! A machine in the foreground: input, output, signals and status pass through.
//!
//! Threads feed one queue of events, which the session's owner drains:
//!
//! - streams: the program's input and output, each by itself ([`streams`]), and the console
//!   log with what went out;
//! - serial: COM1 to standard output and to the log, until QEMU closes it, and where the
//!   machine has no streams standard input to COM1;
//! - signals: SIGINT, SIGTERM and SIGHUP, which are for the program, and SIGWINCH, which is
//!   for its terminal;
//! - viewers: who attaches sees what the program writes, and may type ([`crate::attach`]);
//! - clients: commands that others run in the machine ([`crate::agent`]);
//! - trace: the kernel's lines to standard error, if the user wants system calls.
//!
//! At a terminal Ctrl-C is a key like any other: the machine's line discipline makes
//! a signal of it. Three within a second end the machine by force. Elsewhere the first
//! signal asks the program to end, the second ends the machine.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use agent::Message;
use qemu::report::Report;
use qemu::{Machine, Origin, Prepared, Qemu, Streams, Vm};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::agent::client::Client;
use crate::agent::{hub, renewal};
use crate::attach::viewers::{Output, Viewers};
use crate::failure::Failure;
use crate::flags::{OnUnhealthy, Span};
use crate::log::Log;
use crate::room;
use crate::stdio::{self, Console, StdFile, Stdio};
use crate::streams::{self, Outlet};
use crate::terminal;

/// What Ctrl-C sends at a terminal in raw mode.
const CTRL_C: u8 = 3;
/// What ends a file at a terminal.
const CTRL_D: u8 = 4;
/// As many Ctrl-C within [`INSISTENCE`] end the machine.
const INSISTENT_PRESSES: usize = 3;
const INSISTENCE: Duration = Duration::from_secs(1);
/// How often the last output is looked for.
const LAST_POLL: Duration = Duration::from_millis(2);
/// How a line about a system call starts; a thread's number follows.
const TRACE_LINE: &[u8] = b"sietch: [";
/// How often the kernel's log is looked at while it is shown.
const TRACE_POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
enum Event {
    /// QEMU closed the console.
    Ended,
    /// The program should end.
    Terminate,
    /// The machine should end now.
    Kill,
    /// The machine should end, so that it can be started again.
    Renew {
        /// Whether it is not asked.
        by_force: bool,
    },
}

/// How a session ends its machine.
#[derive(Clone, Copy, Debug)]
pub struct StopRules<'a> {
    /// The machine's name, by which its agent is reached.
    pub name: &'a str,
    /// The signal that asks the program to end, if not SIGTERM.
    pub signal: Option<u8>,
    /// How long it may take then.
    pub patience: Duration,
    /// How long the machine may run at all.
    pub after: Option<Duration>,
}

/// A machine that has ended.
#[derive(Debug)]
pub struct Served {
    /// What its kernel reported.
    pub report: Report,
    /// What QEMU said.
    pub complaints: String,
    /// Whether somebody wanted it to end.
    pub was_asked: bool,
}

/// Ends a session's machine from another thread.
#[derive(Clone, Debug)]
pub struct Ender(Sender<Event>);

impl Ender {
    /// Does what is to be done with a machine that is unhealthy.
    pub fn end(&self, how: OnUnhealthy) {
        let event = match how {
            OnUnhealthy::None => return,
            OnUnhealthy::Kill => Event::Renew { by_force: true },
            OnUnhealthy::Restart => Event::Renew { by_force: false },
            OnUnhealthy::Stop => Event::Terminate,
        };
        // A session that has just ended needs it no more.
        let _ = self.0.send(event);
    }
}

/// A machine that runs in the foreground.
#[derive(Debug)]
pub struct Session {
    vm: Vm,
    events: Receiver<Event>,
    sender: Sender<Event>,
    complaints: qemu::Transcript,
    trace: Option<JoinHandle<()>>,
    /// Threads that bring the program's output out.
    outputs: Vec<JoinHandle<()>>,
    /// QEMU's console needs its other end.
    _serial: Option<ChildStdin>,
    /// Who is attached.
    viewers: Viewers,
    /// Streams into which nobody writes here, and which are not to end.
    held: Vec<UnixStream>,
}

impl Session {
    /// Starts the machine and the threads that serve it.
    pub fn start(
        qemu: &Qemu,
        machine: Prepared,
        console_log: &Path,
        console: Console,
    ) -> Result<Self, Failure> {
        let log = Log::open(console_log).map_err(Failure::file(console_log))?;
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH]).map_err(Failure::Lost)?;
        let (vm, pipes) = machine.start(qemu)?;
        room::watch(vm.machine());
        if let Some(note) = pipes.note {
            eprintln!("sietch: {note}");
        }
        let (sender, events) = channel();
        let for_serial = sender.clone();
        let serial_log = log.clone();
        // Ours is not held in vain: its reader waits for its end.
        let has_serial = matches!(console, Console::Serial { .. });
        let serial = has_serial.then(|| stdio::duplicate(1)).flatten();
        thread::spawn(move || {
            copy_serial(pipes.output, serial, &serial_log);
            let _ = for_serial.send(Event::Ended);
        });
        let mut session = Self {
            vm,
            events,
            sender,
            complaints: qemu::Transcript::of(pipes.complaints),
            trace: None,
            outputs: Vec::new(),
            _serial: None,
            viewers: Viewers::default(),
            held: Vec::new(),
        };
        let mut on_resize = None;
        match (console, pipes.streams) {
            (Console::Streams(stdio), Some(streams)) => {
                let is_renewed = matches!(session.vm.machine().origin, Origin::Snapshot(_));
                if is_renewed {
                    // Before anybody's request, which it would end.
                    renewal::send(&streams.agent).map_err(Failure::Lost)?;
                }
                hub::serve(&streams.agent, &session.vm.machine().state).map_err(Failure::Lost)?;
                if is_renewed {
                    session.vm.go_on().map_err(Failure::Lost)?;
                }
                on_resize = session
                    .connect(stdio, streams, &log)
                    .map_err(Failure::Lost)?;
                session._serial = Some(pipes.input);
            }
            _ => session.type_serial(pipes.input),
        }
        session.heed(signals, on_resize);
        Ok(session)
    }

    /// Connects our descriptors with the machine's streams; what to do when the terminal's
    /// window changes, if there is one.
    fn connect(
        &mut self,
        stdio: Stdio,
        streams: Streams,
        log: &Log,
    ) -> io::Result<Option<impl FnMut() + Send + use<>>> {
        let is_stream = |number: usize| stdio.is_ours && stdio.files[number] == StdFile::Stream;
        let screen = stdio.terminal();
        let to_output = is_stream(1).then(stdio::take_output);
        let viewers = &self.viewers;
        let output = Outlet::new(to_output.flatten(), viewers, Output::Out);
        let to_errors = is_stream(2).then(|| stdio::duplicate(2));
        let errors = Outlet::new(to_errors.flatten(), viewers, Output::Errors);
        let window_of = screen.as_ref().and_then(|screen| screen.try_clone().ok());
        let keys = streams.terminal.try_clone()?;
        let mut messages = streams.messages.try_clone()?;
        self.let_attach(&stdio, &streams)?;
        for (outlet, stream) in [
            (Outlet::new(screen, viewers, Output::Out), streams.terminal),
            (output.clone(), streams.stdout),
            (errors, streams.stderr),
        ] {
            let log = log.clone();
            let copy = move || outlet.copy_from(stream, &log);
            self.outputs.push(thread::spawn(copy));
        }
        thread::spawn(move || streams::obey_messages(streams.messages, &output));
        match stdio.is_ours || !stdio.is_open && stdio.files[0] == StdFile::Stream {
            true => self.read_input(stdio, keys, streams.stdin),
            // Only who attaches types, and nothing of what is typed is the last.
            false => self.held = vec![keys, streams.stdin],
        }
        Ok(window_of.map(|screen| {
            move || {
                if let Some(window) = stdio::window_of(&screen) {
                    // A machine that has ended needs no window.
                    let _ = streams::send_window(&mut messages, window);
                }
            }
        }))
    }

    /// Lets others see what the program writes, and type if its input is open.
    fn let_attach(&self, stdio: &Stdio, streams: &Streams) -> io::Result<()> {
        let input = match stdio.files[0] {
            StdFile::Terminal => &streams.terminal,
            _ => &streams.stdin,
        };
        let input = stdio.is_open.then(|| input.try_clone()).transpose()?;
        let mut messages = streams.messages.try_clone()?;
        let folder = &self.vm.machine().state;
        self.viewers
            .serve(folder, stdio.has_terminal(), input, move |window| {
                // A machine that has ended needs no window.
                let _ = streams::send_window(&mut messages, window);
            })
    }

    /// Brings descriptor 0 into the machine: as keys, or as a stream.
    fn read_input(&self, stdio: Stdio, keys: UnixStream, stdin: UnixStream) {
        let Some(input) = stdio::duplicate(0) else {
            return;
        };
        if stdio.files[0] == StdFile::Terminal {
            let mut presses = Presses::new(self.sender.clone());
            thread::spawn(move || {
                // Kept, so that the machine sees no end of what it does not read.
                let _stdin = stdin;
                streams::copy_in(input, keys, |bytes| presses.look(bytes));
            });
        } else {
            thread::spawn(move || {
                let _keys = keys;
                streams::copy_in(input, stdin, |_| ());
            });
        }
    }

    /// Types what we read into the serial port.
    fn type_serial(&self, input: ChildStdin) {
        let presses = terminal::is_terminal().then(|| Presses::new(self.sender.clone()));
        thread::spawn(move || copy_to_serial(input, presses));
    }

    /// Passes signals on.
    fn heed(&self, mut signals: Signals, mut on_resize: Option<impl FnMut() + Send + 'static>) {
        let sender = self.sender.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                match (signal, &mut on_resize) {
                    (SIGWINCH, Some(on_resize)) => on_resize(),
                    (SIGWINCH, None) => {}
                    _ => _ = sender.send(Event::Terminate),
                }
            }
        });
    }

    /// The machine as it was started.
    pub fn machine(&self) -> &Machine {
        self.vm.machine()
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

    /// Who is attached, for the last word.
    pub fn viewers(&self) -> Viewers {
        self.viewers.clone()
    }

    /// Who else may end the machine: the health check.
    pub fn ender(&self) -> Ender {
        Ender(self.sender.clone())
    }

    /// Ends the machine after `time`.
    fn end_after(&self, time: Duration) {
        let sender = self.sender.clone();
        thread::spawn(move || {
            thread::sleep(time);
            let _ = sender.send(Event::Kill);
        });
    }

    /// Serves the machine until it ends.
    pub fn serve(mut self, stop: &StopRules<'_>) -> Result<Served, Failure> {
        let mut deadline: Option<Instant> = None;
        let (mut is_killed, mut was_asked) = (false, false);
        if let Some(time) = stop.after {
            self.end_after(time);
        }
        loop {
            match self.next_event(deadline) {
                Event::Ended => break,
                Event::Terminate if deadline.is_none() => {
                    was_asked = true;
                    deadline = Some(deadline_after(stop.patience));
                    is_killed = !self.ask_to_end(stop);
                }
                Event::Renew { by_force } => {
                    deadline = Some(deadline_after(stop.patience));
                    is_killed = by_force || !self.ask_to_end(stop);
                }
                Event::Kill | Event::Terminate => (is_killed, was_asked) = (true, true),
            }
            if is_killed {
                self.vm.kill();
            }
        }
        let report = self.vm.wait().map_err(Failure::Lost)?;
        self.viewers.let_go();
        if !is_killed {
            self.wait_for_last_output();
        }
        if let Some(trace) = self.trace.take() {
            let _ = trace.join();
        }
        drop(self.sender);
        Ok(Served {
            report,
            complaints: self.complaints.text(),
            was_asked,
        })
    }

    /// Asks the program to end; whether it heard.
    fn ask_to_end(&self, stop: &StopRules<'_>) -> bool {
        let by_signal = stop.signal.is_some_and(|signal| {
            let client = Client::connect(stop.name);
            client.is_ok_and(|(client, _)| client.say(0, Message::Signal(signal)).is_ok())
        });
        by_signal || self.vm.terminate().is_ok()
    }

    /// Waits until all output is out, or the user wants to wait no longer.
    fn wait_for_last_output(&self) {
        while !self.outputs.iter().all(JoinHandle::is_finished) {
            match self.events.recv_timeout(LAST_POLL) {
                Ok(Event::Terminate | Event::Kill) => return,
                Ok(Event::Ended | Event::Renew { .. }) | Err(_) => {}
            }
        }
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

/// So long from now; a user may give any number of seconds.
pub(crate) fn deadline_after(patience: Duration) -> Instant {
    Instant::now() + patience.min(Span::LONGEST)
}

/// Copies the serial port out. The log goes on when nobody reads our output any more.
fn copy_serial(mut serial: impl Read, mut output: Option<File>, log: &Log) {
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = serial.read(&mut buffer) {
        if let Some(output) = &mut output {
            let _ = output.write_all(&buffer[..len]);
        }
        log.add(&buffer[..len]);
    }
}

/// Copies keys to the serial port, and at their end the key that says so.
fn copy_to_serial(mut serial: ChildStdin, mut presses: Option<Presses>) {
    let mut stdin = io::stdin();
    let mut buffer = [0; 1024];
    loop {
        let len = stdin.read(&mut buffer).unwrap_or(0);
        if len == 0 {
            let _ = serial.write_all(&[CTRL_D]).and_then(|()| serial.flush());
            // The pipe stays open: QEMU's console needs its other end.
            thread::park();
        }
        let keys = &buffer[..len];
        if let Some(presses) = &mut presses {
            presses.look(keys);
        }
        if serial
            .write_all(keys)
            .and_then(|()| serial.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Watches for an insistent Ctrl-C.
struct Presses {
    recent: Vec<Instant>,
    events: Sender<Event>,
}

impl Presses {
    fn new(events: Sender<Event>) -> Self {
        let recent = Vec::new();
        Self { recent, events }
    }

    fn look(&mut self, keys: &[u8]) {
        let now = Instant::now();
        self.recent
            .retain(|&press| now.duration_since(press) < INSISTENCE);
        let presses = keys.iter().filter(|&&key| key == CTRL_C);
        self.recent.extend(presses.map(|_| now));
        if self.recent.len() >= INSISTENT_PRESSES {
            let _ = self.events.send(Event::Kill);
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
