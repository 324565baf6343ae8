//! The console: what process 1 has as descriptors 0, 1 and 2, and /dev/console.
//!
//! What the host has at its own descriptors decides ([`Host`]), as if the program ran
//! there: a terminal is a terminal, whose keys and screen go through a port of the host's
//! ([`super::ports`]); a file or a pipe is a stream with a port of its own
//! ([`super::stream`]). A host that offers no ports has the serial port for everything
//! ([`super::serial`]).

use alloc::sync::Arc;

use base::Duration;
use hal::BytePorts;
use mach::sync::{Once, Spin};
use sched::{Softirq, Work, raise, register_softirq};
use sync::{Error, Result, Wait};
use task::Pid;

use super::driver::Driver;
use super::ports::{self, AGENT, HostStream, INPUT, OUTPUT, TERMINAL};
use super::serial::Stream;
use super::stream::StreamFile;
use super::terminal::WindowSize;
use super::{Terminal, TerminalFile};
use vfs::file::{FileRef, OpenFile, StatusFlags};

/// Bytes of input to a terminal that are handled in one run.
const BATCH_BYTES_MAX: usize = 256;
/// How long the host may take to connect its streams.
const HOST_PATIENCE: Duration = Duration::from_secs(30);
/// Descriptors of a program that somebody else opened.
const STANDARD_FILES: usize = 3;

/// What the host has at one of its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFile {
    /// A terminal.
    Terminal,
    /// A file, a pipe or a device.
    Stream,
    /// The same file as descriptor 1.
    SameAsOutput,
}

/// What the host has for its program's input and output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A terminal at the serial port.
    SerialTerminal,
    /// Something else at the serial port.
    SerialStream,
    /// A port for each stream, and one for a terminal with that many rows and columns.
    Ports {
        /// What descriptors 0, 1 and 2 are.
        files: [HostFile; STANDARD_FILES],
        /// Lines on the terminal's screen.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

enum Console {
    SerialTerminal(Arc<Terminal>),
    SerialStream(Arc<Stream>),
    Ports {
        files: [HostFile; STANDARD_FILES],
        terminal: Option<Arc<Terminal>>,
    },
}

/// The machine has one console.
static CONSOLE: Once<Console> = Once::new();
/// Held from the port to the queue: two CPUs that take input must not swap it. The port is one.
static TAKER: Spin<()> = Spin::new(());

/// Sets the console up; once at boot.
pub fn init(host: Host) {
    CONSOLE.call_once(|| match host {
        Host::SerialTerminal => Console::SerialTerminal(Terminal::new(Driver::Serial)),
        Host::SerialStream => Console::SerialStream(Arc::default()),
        Host::Ports {
            files,
            rows,
            columns,
        } => {
            let terminal = files.contains(&HostFile::Terminal).then(|| {
                let terminal = Terminal::new(Driver::Port(&TERMINAL));
                terminal.set_window(window(rows, columns));
                terminal
            });
            Console::Ports { files, terminal }
        }
    });
    register_softirq(
        Softirq::Console,
        Work {
            run: take_input,
            look: None,
        },
    );
    mach::console::on_input(|| raise(Softirq::Console));
    // Some input may have come before.
    raise(Softirq::Console);
}

/// Takes the device with the host's streams, whose interrupt raises [`Softirq::Console`].
pub fn attach(device: alloc::boxed::Box<dyn BytePorts + Send>) {
    ports::attach(device);
    raise(Softirq::Console);
}

fn window(rows: u16, columns: u16) -> WindowSize {
    WindowSize {
        rows,
        columns,
        ..WindowSize::default()
    }
}

/// Opens /dev/console.
///
/// Errors: `NoSuchDevice` before it is set up.
pub fn open() -> Result<FileRef> {
    Ok(match CONSOLE.get().ok_or(Error::NoSuchDevice)? {
        Console::SerialTerminal(terminal)
        | Console::Ports {
            terminal: Some(terminal),
            ..
        } => TerminalFile::new(terminal.clone()),
        Console::SerialStream(stream) => stream.clone(),
        Console::Ports { .. } => StreamFile::new(Some(&INPUT), Some(&OUTPUT)),
    })
}

/// Open files for descriptors 0, 1 and 2, where `console` is an open file of /dev/console.
///
/// Errors: `TimedOut` if the host does not connect its streams.
pub fn standard_files(console: &Arc<OpenFile>) -> Result<[Arc<OpenFile>; STANDARD_FILES]> {
    let Some(Console::Ports { files, .. }) = CONSOLE.get() else {
        return Ok([console.clone(), console.clone(), console.clone()]);
    };
    let deadline = mach::time::now() + HOST_PATIENCE;
    for stream in streams(files) {
        let has_begun = || stream.has_begun().then_some(());
        let how = Wait::UNINTERRUPTIBLE.until(deadline);
        stream.pollee.queue.wait(how, has_begun)?;
    }
    let stream_of = |number: usize| match number {
        0 => OpenFile::new(StreamFile::new(Some(&INPUT), None), StatusFlags::empty()),
        _ => {
            let output = StreamFile::new(None, Some(ports::of_descriptor(number)));
            OpenFile::new(output, StatusFlags::WRONLY)
        }
    };
    let open = |number: usize| match files[number] {
        HostFile::Terminal => console.clone(),
        _ => stream_of(number),
    };
    let (input, output) = (open(0), open(1));
    let errors = match files[2] {
        HostFile::SameAsOutput => output.clone(),
        _ => open(2),
    };
    Ok([input, output, errors])
}

/// The streams that these descriptors need.
fn streams(files: &[HostFile; STANDARD_FILES]) -> impl Iterator<Item = &'static HostStream> {
    let own = (0..STANDARD_FILES).filter(|&number| files[number] == HostFile::Stream);
    let terminal = files.contains(&HostFile::Terminal).then_some(&TERMINAL);
    own.map(ports::of_descriptor)
        .chain(terminal)
        .chain([&ports::MESSAGES])
}

/// Makes the console, if it is a terminal, the controlling one of the session that `leader`
/// leads, with the leader in the foreground: for the first process, which nobody logs in.
pub fn control_session(leader: Pid) {
    if let Some(
        Console::SerialTerminal(terminal)
        | Console::Ports {
            terminal: Some(terminal),
            ..
        },
    ) = CONSOLE.get()
    {
        // It has no session yet: this comes once, before any program runs.
        let _ = terminal.control(leader, Some(leader));
    }
}

/// Whether the host has a port for the kernel's agent.
pub fn has_agent_port() -> bool {
    matches!(CONSOLE.get(), Some(Console::Ports { .. }))
}

/// The port of the kernel's agent, by which it talks to the host; `None` where the host has no ports.
pub fn agent_port() -> Option<FileRef> {
    let port = || StreamFile::new(Some(&AGENT), Some(&AGENT)) as FileRef;
    has_agent_port().then(port)
}

/// The machine ends: takes no more output, and waits until the host has what there is.
/// Who reads slowly is waited for; who let go is not.
pub fn finish() {
    if let Some(Console::Ports { files, .. }) = CONSOLE.get() {
        ports::take_no_more();
        for stream in streams(files) {
            let is_done = || stream.is_flushed().then_some(());
            // Without a deadline and without signals there is nothing that could fail.
            let _ = stream.pollee.queue.wait(Wait::UNINTERRUPTIBLE, is_done);
        }
    }
}

fn take_input() {
    let Some(console) = CONSOLE.get() else { return };
    let _in_order = TAKER.lock();
    match console {
        Console::SerialTerminal(terminal) => {
            let mut bytes = [0; BATCH_BYTES_MAX];
            let count = take_serial(&mut bytes, terminal.input_room());
            terminal.input(&bytes[..count]);
        }
        Console::SerialStream(stream) => {
            let mut bytes = [0; BATCH_BYTES_MAX];
            let count = take_serial(&mut bytes, stream.input_room());
            stream.input(&bytes[..count]);
        }
        Console::Ports { files, terminal } => serve_ports(files, terminal.as_ref()),
    }
}

/// Takes bytes off the serial port, at most `room`.
fn take_serial(bytes: &mut [u8; BATCH_BYTES_MAX], room: usize) -> usize {
    let limit = room.min(bytes.len());
    let mut count = 0;
    while count < limit
        && let Some(byte) = mach::console::read()
    {
        bytes[count] = byte;
        count += 1;
    }
    if count == bytes.len() {
        raise(Softirq::Console);
    }
    count
}

fn serve_ports(files: &[HostFile; STANDARD_FILES], terminal: Option<&Arc<Terminal>>) {
    ports::service();
    streams(files).chain([&AGENT]).for_each(HostStream::serve);
    let Some(terminal) = terminal else { return };
    if let Some((rows, columns)) = ports::take_window_size() {
        terminal.set_window(window(rows, columns));
    }
    let mut bytes = [0; BATCH_BYTES_MAX];
    let limit = terminal.input_room().min(bytes.len());
    let count = TERMINAL.take(&mut bytes[..limit]);
    terminal.input(&bytes[..count]);
    if count == bytes.len() {
        raise(Softirq::Console);
    }
    if TERMINAL.has_room() {
        terminal.screen_has_room();
    }
}
