//! A client's end: a command's input, output, signals and status are ours.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use agent::{Decoder, Frame, Message, PAYLOAD_BYTES_MAX, Refusal, Request, WINDOW_BYTES, Window};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use super::{next_frame, socket};
use crate::failure::Failure;
use crate::flags::ExecFlags;
use crate::refused::ExecRefused;
use crate::state::Folder;
use crate::stdio::{duplicate, window_of};

/// docker's status for a command whose container was killed.
const STATUS_MACHINE_ENDED: u8 = 137;
/// A client has one command; the session gives it the channel.
pub(super) const CHANNEL: u16 = 1;

/// Bytes of input that the command still takes.
#[derive(Default)]
pub(super) struct Credit {
    bytes: Mutex<usize>,
    granted: Condvar,
}

impl Credit {
    pub(super) fn grant(&self, bytes: usize) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        self.granted.notify_all();
    }

    /// Waits for some, and takes at most `limit`.
    pub(super) fn take(&self, limit: usize) -> usize {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *bytes == 0 {
            let waited = self.granted.wait(bytes);
            bytes = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let taken = limit.min(*bytes);
        *bytes -= taken;
        taken
    }
}

/// A connection to the session of a machine; its clones are one.
#[derive(Clone)]
pub struct Client(Arc<Mutex<UnixStream>>);

impl Client {
    /// Calls the session of the machine `name`.
    pub fn connect(name: &str) -> Result<(Self, UnixStream), Failure> {
        let name = name.to_string();
        let folder = Folder::of(&name);
        if folder.running().is_none() {
            return Err(Failure::NoSuchMachine { name });
        }
        let stream = UnixStream::connect(socket(folder.path()));
        let stream = stream.map_err(|_| Failure::NoAgent { name })?;
        let writer = stream.try_clone().map_err(Failure::Lost)?;
        Ok((Self(Arc::new(Mutex::new(writer))), stream))
    }

    /// Says something on `channel`.
    pub fn say(&self, channel: u16, message: Message<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        Frame { channel, message }.encode(&mut bytes);
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&bytes)
    }

    /// Sends a request.
    pub(super) fn ask(&self, request: &[u8]) -> io::Result<()> {
        let mut parts = request.chunks(PAYLOAD_BYTES_MAX).peekable();
        while let Some(part) = parts.next() {
            let message = match parts.peek() {
                Some(_) => Message::ExecPart(part),
                None => Message::Exec(part),
            };
            self.say(CHANNEL, message)?;
        }
        Ok(())
    }
}

/// What keeps the command of `flags` from being run.
pub fn refused(flags: &ExecFlags, reason: Refusal) -> Failure {
    Failure::ExecRefused(ExecRefused {
        machine: flags.name.clone(),
        program: flags.command.first().cloned().unwrap_or_default(),
        directory: flags.folder.clone().unwrap_or_default(),
        reason,
    })
}

/// Runs a command in the machine that `flags` name; its exit status.
pub fn run(flags: &ExecFlags, request: &Request<'_>) -> Result<u8, Failure> {
    let name = &flags.name;
    let encoded = request.encode();
    let encoded = encoded.ok_or_else(|| refused(flags, Refusal::ArgumentsTooLong))?;
    let (client, mut stream) = Client::connect(name)?;
    let credit = Arc::new(Credit::default());
    credit.grant(WINDOW_BYTES as usize);
    if !request.is_detached {
        pass_signals(&client, request.terminal.is_some()).map_err(Failure::Lost)?;
    }
    // A session that has just ended is heard of below.
    let _ = client.ask(&encoded);
    if request.has_input
        && let Some(input) = duplicate(0)
    {
        let (client, credit) = (client.clone(), credit.clone());
        thread::spawn(move || send_input(input, &client, &credit));
    }
    let mut decoder = Decoder::default();
    while let Ok(Some(frame)) = next_frame(&mut stream, &mut decoder) {
        match frame.message {
            Message::Exit(status) => return Ok(status),
            Message::Refused(reason) => return Err(refused(flags, reason)),
            Message::Credit(bytes) => credit.grant(bytes as usize),
            Message::Stdout(bytes) => show(&client, io::stdout(), bytes),
            Message::Stderr(bytes) => show(&client, io::stderr(), bytes),
            _ => {}
        }
    }
    eprintln!("sietch: The machine {name} has ended, and the command with it.");
    Ok(STATUS_MACHINE_ENDED)
}

/// Writes output, for which the machine then has room again. Where nobody reads it, it is dropped, and the
/// command goes on.
fn show(client: &Client, mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
    // A session that has just ended is heard of by its socket.
    let _ = client.say(CHANNEL, Message::Credit(bytes.len() as u32));
}

fn send_input(mut input: File, client: &Client, credit: &Credit) {
    let mut buffer = [0; PAYLOAD_BYTES_MAX];
    loop {
        let room = credit.take(buffer.len());
        let len = input.read(&mut buffer[..room]).unwrap_or(0);
        credit.grant(room - len);
        let said = match len {
            0 => client.say(CHANNEL, Message::StdinEnd),
            len => client.say(CHANNEL, Message::Stdin(&buffer[..len])),
        };
        if len == 0 || said.is_err() {
            return;
        }
    }
}

/// What we are told, the command is told. At a terminal Ctrl-C is a key.
fn pass_signals(client: &Client, has_terminal: bool) -> io::Result<()> {
    let ours = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
    let mut signals = Signals::new(ours)?;
    let client = client.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let said = match (signal, has_terminal) {
                (SIGWINCH, true) => client.say(CHANNEL, Message::Window(window())),
                (SIGWINCH, false) => Ok(()),
                (signal, _) => client.say(CHANNEL, Message::Signal(signal as u8)),
            };
            if said.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// The window of our terminal.
pub fn window() -> Window {
    let window = window_of(io::stdin()).or_else(|| window_of(io::stdout()));
    let window = window.unwrap_or_default();
    Window {
        rows: window.rows,
        columns: window.columns,
    }
}
