//! One command: bytes to and from it, what was granted in either direction, and its end.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use agent::{Malformed, Message, PAYLOAD_BYTES_MAX, Refusal, Request, Task, WINDOW_BYTES, Window};
use mach::mem::fallible::{TryGrow, TryPush};
use sync::poll::Events;
use task::signal::{self, Info, Signal};
use task::{ExitStatus, Process};
use tty::Master;
use vfs::file::poll::Watched;
use vfs::file::{FileRef, OpenFile, StatusFlags};

use crate::launch::{self, Launch, Outcome};
use crate::port::Port;
use crate::stdio::{self, Output};

/// What ends a copy.
const SIGKILL: u8 = 9;
/// The key that ends a file at a terminal.
const END_KEY: u8 = 4;
/// A shell's status for a program that a signal ended, less the signal.
const SIGNAL_STATUS: u8 = 128;
/// Credit is given back in pieces of so much, while there is input left.
const CREDIT_BYTES_LEAST: u32 = 16 << 10;

pub(crate) struct Channel {
    number: u16,
    process: Arc<Process>,
    /// Readable when the process has ended.
    ended: Arc<OpenFile>,
    launch: Arc<Launch>,
    /// Readable when it is known whether the program runs.
    launched: Arc<OpenFile>,
    is_detached: bool,
    /// Whether it is a copy, which nobody needs any more who does not listen.
    is_copy: bool,
    terminal: Option<Arc<Master>>,
    input: Option<Arc<OpenFile>>,
    /// Came and is not written yet.
    waiting: VecDeque<u8>,
    /// The input ends behind what waits.
    input_ends: bool,
    /// Bytes that were written, for which the host has no credit yet.
    owed: u32,
    outputs: [Option<Arc<OpenFile>>; 2],
    /// Bytes of output that the host takes.
    credit: u32,
    /// Nobody listens any more: output is dropped.
    is_closed: bool,
    /// What the last look saw of the end, and of the start. Only what it did not see is waited for: between a look
    /// and the wait both may come.
    has_seen_end: bool,
    has_seen_launch: bool,
}

/// What a look at a channel came to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It waits.
    Idle,
    /// Something moved.
    Moved,
    /// It is over, and the host knows.
    Over,
}

impl Channel {
    /// Starts what `request` asks for.
    pub(crate) fn start(number: u16, request: &[u8]) -> Result<Self, Refusal> {
        let request = Request::decode(request).ok_or(Refusal::BadRequest)?;
        let (theirs, ours) = stdio::make(&request).map_err(|_| Refusal::TooMany)?;
        let (process, launch) = launch::start(number, &request, theirs)?;
        let as_file = |file: FileRef| OpenFile::new(file, StatusFlags::empty());
        Ok(Self {
            number,
            ended: as_file(task::pid_file(process.clone())),
            process,
            launched: as_file(launch.clone()),
            launch,
            is_detached: request.is_detached,
            is_copy: request.task != Task::Run,
            terminal: ours.terminal,
            input: ours.input,
            waiting: VecDeque::new(),
            input_ends: false,
            owed: 0,
            outputs: ours.outputs,
            credit: WINDOW_BYTES,
            is_closed: false,
            has_seen_end: false,
            has_seen_launch: false,
        })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Obeys the host.
    pub(crate) fn obey(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        match message {
            Message::Stdin(bytes) => self.take_input(bytes)?,
            Message::StdinEnd => self.end_input(),
            Message::Window(Window { rows, columns }) => {
                if let Some(terminal) = &self.terminal {
                    terminal.set_window(rows, columns);
                }
            }
            Message::Signal(number) => send_signal(&self.process, number),
            Message::Credit(bytes) => self.credit = self.credit.saturating_add(bytes),
            Message::Close => self.close(),
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn take_input(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.waiting.len() + bytes.len() > WINDOW_BYTES as usize {
            return Err(Malformed);
        }
        match &self.input {
            // Nobody will read it.
            None => self.owe(bytes.len()),
            Some(_) if self.waiting.make_room(bytes.len()).is_ok() => self.waiting.extend(bytes),
            // Cut off is better than with a hole: the command sees the end of its input.
            Some(_) => self.drop_input(),
        }
        Ok(())
    }

    fn end_input(&mut self) {
        let has_terminal = self.terminal.is_some();
        if has_terminal && self.waiting.try_push(END_KEY).is_err() {
            self.drop_input();
        }
        self.input_ends = !has_terminal;
    }

    fn drop_input(&mut self) {
        self.input = None;
        self.owe(self.waiting.len());
        self.waiting.clear();
    }

    fn owe(&mut self, bytes: usize) {
        // A host that keeps to its window owes no more than that.
        self.owed = self.owed.saturating_add(bytes as u32);
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.drop_input();
        if self.terminal.take().is_some() {
            // The last reference to the master: the terminal is hung up.
            self.outputs = [None, None];
        }
        if self.is_copy {
            self.outputs = [None, None];
            send_signal(&self.process, SIGKILL);
        }
    }

    /// Moves what can be moved.
    pub(crate) fn step(&mut self, port: &mut Port, scratch: &mut [u8]) -> Step {
        let ended = self.process.ended_with();
        let outcome = self.launch.outcome();
        self.has_seen_end = ended.is_some();
        self.has_seen_launch = outcome.is_some();
        let mut has_moved = self.feed();
        has_moved |= self.give_credit(port);
        let mut is_dry = true;
        for at in 0..self.outputs.len() {
            match self.bring(at, port, scratch) {
                Step::Moved => {
                    has_moved = true;
                    is_dry = false;
                }
                Step::Idle => is_dry = false,
                Step::Over => {}
            }
        }
        match self.last_word(outcome, ended) {
            Some(message) if is_dry && port.has_room() => {
                port.send(self.number, message);
                Step::Over
            }
            _ if has_moved => Step::Moved,
            _ => Step::Idle,
        }
    }

    /// Writes what waits.
    fn feed(&mut self) -> bool {
        let Some(input) = &self.input else {
            return false;
        };
        let (front, _) = self.waiting.as_slices();
        let written = match front {
            [] => Ok(0),
            front => stdio::write(input, front),
        };
        match written {
            Err(_) => self.drop_input(),
            Ok(count) => {
                self.waiting.drain(..count);
                self.owe(count);
                if self.input_ends && self.waiting.is_empty() {
                    self.input = None;
                }
                return count != 0;
            }
        }
        true
    }

    fn give_credit(&mut self, port: &mut Port) -> bool {
        let is_due = self.owed >= CREDIT_BYTES_LEAST || (self.owed != 0 && self.waiting.is_empty());
        if !is_due || self.is_closed || !port.has_room() {
            return false;
        }
        port.send(
            self.number,
            Message::Credit(core::mem::take(&mut self.owed)),
        );
        true
    }

    /// Brings a piece of an output to the host. `Over` if there is nothing in it, `Idle` if that is not to be known
    /// yet.
    fn bring(&mut self, at: usize, port: &mut Port, scratch: &mut [u8]) -> Step {
        let limit = match self.is_closed {
            true => PAYLOAD_BYTES_MAX,
            false => PAYLOAD_BYTES_MAX.min(self.credit as usize),
        };
        let Some(open) = self.outputs.get(at).and_then(Option::as_ref) else {
            return Step::Over;
        };
        if limit == 0 || !port.has_room() {
            return Step::Idle;
        }
        let room = scratch.get_mut(..limit).unwrap_or_default();
        match stdio::read(open, room) {
            Output::Dry => Step::Over,
            Output::End => {
                if let Some(place) = self.outputs.get_mut(at) {
                    *place = None;
                }
                Step::Over
            }
            Output::Bytes(count) => {
                self.send_output(at, port, scratch.get(..count).unwrap_or_default());
                Step::Moved
            }
        }
    }

    fn send_output(&mut self, at: usize, port: &mut Port, bytes: &[u8]) {
        if self.is_closed {
            return;
        }
        self.credit = self.credit.saturating_sub(bytes.len() as u32);
        let message = match at {
            0 => Message::Stdout(bytes),
            _ => Message::Stderr(bytes),
        };
        port.send(self.number, message);
    }

    /// How the channel ends, if it does.
    fn last_word(
        &self,
        outcome: Option<Outcome>,
        ended: Option<ExitStatus>,
    ) -> Option<Message<'static>> {
        match (outcome, ended) {
            (Some(Err(reason)), Some(_)) => Some(Message::Refused(reason)),
            (Some(Ok(())), _) if self.is_detached => Some(Message::Exit(0)),
            (_, Some(ExitStatus::Exited(status))) => Some(Message::Exit(status)),
            (_, Some(ExitStatus::Killed(signal))) => {
                // Signals have numbers up to 64.
                Some(Message::Exit(SIGNAL_STATUS | signal.number() as u8))
            }
            (_, None) => None,
        }
    }

    /// What to sleep for. What cannot be moved is not looked at.
    pub(crate) fn watch(&self, port_has_room: bool, add: &mut dyn FnMut(Watched)) {
        let mut watch = |open: &Arc<OpenFile>, interest| {
            add(Watched {
                open: Some(open.clone()),
                interest,
                ready: Events::empty(),
            });
        };
        if let Some(input) = self.input.as_ref().filter(|_| !self.waiting.is_empty()) {
            watch(input, Events::WRITABLE);
        }
        if port_has_room && (self.is_closed || self.credit != 0) {
            let outputs = self.outputs.iter().flatten();
            outputs.for_each(|open| watch(open, Events::READABLE));
        }
        if !self.has_seen_end {
            watch(&self.ended, Events::READABLE);
        }
        if self.is_detached && !self.has_seen_launch {
            watch(&self.launched, Events::READABLE);
        }
    }
}

/// Sends a signal, if there is one of that number. A process that has ended hears none.
pub(crate) fn send_signal(process: &Process, number: u8) {
    if let Some(signal) = Signal::new(u32::from(number)) {
        // A full queue loses real-time signals, as it does in Linux.
        let _ = signal::send_to_process(process, Info::kernel(signal));
    }
}
