//! The serial port as a file: a terminal, or a plain stream.
//!
//! Where the host has a terminal the console is one. Where it has none (its output goes to
//! a file or a pipe), programs must see that, or they would colour their output: then
//! the console is a stream that is no terminal.
//!
//! Input is taken off the port by a softirq, so that the handler of the interrupt is short,
//! and only as far as there is room: the host waits while the port is full. The host
//! tells the end of a stream's input by the byte that a terminal's user would type for it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use mach::sync::{Once, Spin};

use super::screen::Screen;
use super::terminal::WindowSize;
use super::{Terminal, TerminalFile};
use crate::error::{Error, Result};
use crate::file::{File, FileRef, OpenFile};
use crate::io::{Sink, Source};
use crate::poll::{Events, Pollee};
use crate::sched::{Softirq, Work, raise, register_softirq};
use crate::sync::Wait;
use crate::task::Pid;

/// Bytes of input that wait at most.
const INPUT_MAX: usize = 4096;
/// Bytes moved at once, on the stack.
const CHUNK_BYTES: usize = 512;
/// What ends the input of a stream: Ctrl-D.
const END_OF_INPUT: u8 = 4;
/// Bytes of input handled in one run.
const BATCH_BYTES_MAX: usize = 256;

/// What the console is.
enum Console {
    Terminal(Arc<Terminal>),
    Stream(Arc<Stream>),
}

static CONSOLE: Once<Console> = Once::new();
/// Held from the port to the queue: two CPUs that take input must not swap it.
static TAKER: Spin<()> = Spin::new(());

/// What the host has at the other end of the serial port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A terminal with that many rows and columns, 0 if unknown.
    Terminal {
        /// Lines on the screen.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
    /// A file or a pipe.
    Stream,
}

/// Sets the console up; once at boot.
pub fn init(host: Host) {
    CONSOLE.call_once(|| match host {
        Host::Terminal { rows, columns } => {
            let terminal = Terminal::new(Screen::Console);
            terminal.set_window(WindowSize {
                rows,
                columns,
                ..WindowSize::default()
            });
            Console::Terminal(terminal)
        }
        Host::Stream => Console::Stream(Arc::default()),
    });
    register_softirq(
        Softirq::Console,
        Work {
            run: take_input,
            prepare_idle: || true,
        },
    );
    mach::console::on_input(|| raise(Softirq::Console));
    // Some input may have come before.
    raise(Softirq::Console);
}

/// Opens the console.
///
/// Errors: `NoSuchDevice` before it is set up.
pub fn open() -> Result<FileRef> {
    match CONSOLE.get() {
        Some(Console::Terminal(terminal)) => Ok(TerminalFile::new(terminal.clone())),
        Some(Console::Stream(stream)) => Ok(stream.clone()),
        None => Err(Error::NoSuchDevice),
    }
}

/// Makes the console, if it is a terminal, the controlling one of the session that `leader`
/// leads, with the leader in the foreground: for the first process, which nobody logs in.
pub fn control_session(leader: Pid) {
    if let Some(Console::Terminal(terminal)) = CONSOLE.get() {
        // It has no session yet: this comes once, before any program runs.
        let _ = terminal.control(leader, Some(leader));
    }
}

fn take_input() {
    let Some(console) = CONSOLE.get() else { return };
    let _in_order = TAKER.lock();
    let mut bytes = [0; BATCH_BYTES_MAX];
    let limit = console.input_room().min(bytes.len());
    let mut count = 0;
    while count < limit
        && let Some(byte) = mach::console::read()
    {
        bytes[count] = byte;
        count += 1;
    }
    match console {
        Console::Terminal(terminal) => terminal.input(&bytes[..count]),
        Console::Stream(stream) => stream.input(&bytes[..count]),
    }
    if count == bytes.len() {
        raise(Softirq::Console);
    }
}

impl Console {
    /// Bytes of input that it takes now.
    fn input_room(&self) -> usize {
        match self {
            Self::Terminal(terminal) => terminal.input_room(),
            Self::Stream(stream) => INPUT_MAX - stream.state.lock().bytes.len(),
        }
    }
}

/// A console that is no terminal.
#[derive(Default)]
struct Stream {
    state: Spin<StreamInput>,
    pollee: Pollee,
}

#[derive(Default)]
struct StreamInput {
    bytes: VecDeque<u8>,
    is_over: bool,
}

impl Stream {
    fn input(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        let end = bytes.iter().position(|&byte| byte == END_OF_INPUT);
        if !state.is_over {
            state.bytes.extend(&bytes[..end.unwrap_or(bytes.len())]);
        }
        state.is_over |= end.is_some();
        drop(state);
        self.pollee.notify(Events::READABLE);
    }

    /// Moves input to `to`; 0 at the end, `None` if there is none yet.
    fn take(&self, to: &mut [u8]) -> Option<usize> {
        let mut state = self.state.lock();
        let count = to.len().min(state.bytes.len());
        for (place, byte) in to.iter_mut().zip(state.bytes.drain(..count)) {
            *place = byte;
        }
        // The port may hold more that had no room.
        raise(Softirq::Console);
        (count != 0 || state.is_over).then_some(count)
    }
}

impl File for Stream {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let mut bytes = [0; CHUNK_BYTES];
        let wanted = to.remaining().min(bytes.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = match open.is_nonblocking() {
            true => self.take(&mut bytes[..wanted]).ok_or(Error::WouldBlock)?,
            false => {
                let queue = &self.pollee.queue;
                queue.wait(Wait::INTERRUPTIBLE, || self.take(&mut bytes[..wanted]))?
            }
        };
        to.put(&bytes[..count])
    }

    fn write(&self, _open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            let mut bytes = [0; CHUNK_BYTES];
            match from.take(&mut bytes) {
                Ok(count) => {
                    mach::console::write(&bytes[..count]);
                    done += count;
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn poll(&self) -> Events {
        let state = self.state.lock();
        let is_waiting = state.bytes.is_empty() && !state.is_over;
        let readable = if is_waiting {
            Events::empty()
        } else {
            Events::READABLE
        };
        readable | Events::WRITABLE
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
