//! The client's end: a machine's program is at our descriptors for a while.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use agent::{Decoder, Message, PAYLOAD_BYTES_MAX};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use super::keys::Scanner;
use super::socket;
use super::viewers::encoded;
use crate::agent::client::{self, Client};
use crate::agent::next_frame;
use crate::failure::Failure;
use crate::flags::AttachFlags;
use crate::state::Folder;
use crate::stdio::duplicate;
use crate::terminal::{self, RawTerminal};

/// docker's status for a container that was killed.
const STATUS_LOST: u8 = 137;

/// A way to say something to the session; its clones are one.
#[derive(Clone)]
struct Session(Arc<Mutex<UnixStream>>);

impl Session {
    fn say(&self, message: Message<'_>) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&encoded(message))
    }

    /// Nothing more is said or heard.
    fn leave(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has gone is left.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Attaches to the machine that `flags` name, until its program ends or somebody detaches; the exit status.
pub fn attach(flags: &AttachFlags) -> Result<u8, Failure> {
    let name = &flags.name;
    let folder = Folder::of(name);
    if folder.running().is_none() {
        return Err(Failure::NoSuchMachine { name: name.clone() });
    }
    let not_there = |_| Failure::NoAgent { name: name.clone() };
    let mut stream = UnixStream::connect(socket(folder.path())).map_err(not_there)?;
    let mut greeting = [0; 2];
    stream.read_exact(&mut greeting).map_err(not_there)?;
    let [has_terminal, has_input] = greeting.map(|byte| byte != 0);
    let types = has_input && !flags.no_stdin;
    let is_raw = has_terminal && types && terminal::is_terminal();
    let session = Session(Arc::new(Mutex::new(
        stream.try_clone().map_err(Failure::Lost)?,
    )));
    pass_signals(flags, &session, has_terminal).map_err(Failure::Lost)?;
    let is_detached = Arc::new(AtomicBool::new(false));
    let raw = is_raw.then(RawTerminal::enter).flatten();
    if has_terminal {
        // A session that has just ended is heard of below.
        let _ = session.say(Message::Window(client::window()));
    }
    if types {
        // Keys that detach are keys: what comes from a file holds none.
        let scanner = is_raw.then(|| Scanner::new(flags.detach_keys.clone().unwrap_or_default()));
        type_in(session, scanner, is_detached.clone());
    }
    let ending = show(&mut stream);
    drop(raw);
    match ending {
        Some(status) => Ok(status),
        None if is_detached.load(Ordering::Relaxed) => {
            eprintln!("sietch: Detached; the machine {name} goes on.");
            Ok(0)
        }
        None => {
            eprintln!("sietch: Whoever keeps the machine {name} has ended, and it with them.");
            Ok(STATUS_LOST)
        }
    }
}

/// Shows what comes; the program's status, if that came last.
fn show(stream: &mut UnixStream) -> Option<u8> {
    let mut decoder = Decoder::default();
    loop {
        match next_frame(stream, &mut decoder).ok()??.message {
            Message::Stdout(bytes) => write(io::stdout(), bytes),
            Message::Stderr(bytes) => write(io::stderr(), bytes),
            Message::Exit(status) => return Some(status),
            _ => {}
        }
    }
}

/// Where nobody reads it, it is dropped, and we stay for the status.
fn write(mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

/// Sends what is typed. The end of it is ours alone.
fn type_in(session: Session, mut scanner: Option<Scanner>, is_detached: Arc<AtomicBool>) {
    let Some(mut input) = duplicate(0) else {
        return;
    };
    thread::spawn(move || {
        let mut buffer = [0; PAYLOAD_BYTES_MAX / 2];
        while let Ok(len @ 1..) = input.read(&mut buffer) {
            let (passed, is_over) = match &mut scanner {
                Some(scanner) => scanner.look(&buffer[..len]),
                None => (buffer[..len].to_vec(), false),
            };
            let said = session.say(Message::Stdin(&passed));
            if is_over {
                is_detached.store(true, Ordering::Relaxed);
                session.leave();
            }
            if is_over || said.is_err() {
                return;
            }
        }
    });
}

/// What we are told, the program is told, unless it is about us. At a terminal Ctrl-C is a key.
fn pass_signals(flags: &AttachFlags, session: &Session, has_terminal: bool) -> io::Result<()> {
    let proxied = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
    let ours: &[i32] = if flags.sig_proxy { &proxied } else { &[] };
    let mut signals = Signals::new(ours.iter().chain(&[SIGWINCH]))?;
    let (session, name) = (session.clone(), flags.name.clone());
    thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGWINCH {
                // A machine that has just ended needs no signal.
                if let Ok((agent, _)) = Client::connect(&name) {
                    let _ = agent.say(0, Message::Signal(signal as u8));
                }
            } else if has_terminal {
                let _ = session.say(Message::Window(client::window()));
            }
        }
    });
    Ok(())
}
