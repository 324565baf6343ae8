//! A program's input and output as streams: one socket for each, which QEMU leads to a port
//! that the kernel knows by its name (`kernel/tty/src/ports.rs`).
//!
//! We listen before QEMU starts, and it connects while it sets its devices up; so all of
//! them are there before the machine runs, or QEMU has ended. QEMU reads a socket as far as
//! the machine has room, and a machine's buffer is free again when all of it is in the
//! socket: nothing is lost and nothing piles up. An end is passed on in both directions, but
//! one of ours that is closed altogether may take with it what QEMU had not read: what
//! writes only ends its half (`shutdown`).

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What the streams are called, on the host and, behind `sietch.`, in the machine; in the
/// order of their ports.
pub(crate) const NAMES: [&str; 6] = ["terminal", "stdin", "stdout", "stderr", "messages", "agent"];

/// How often a connection is looked for.
const POLL: Duration = Duration::from_millis(2);

/// The ends of a machine's streams.
#[derive(Debug)]
pub struct Streams {
    /// Keys and screen, if the program has a terminal.
    pub terminal: UnixStream,
    /// What the program reads at descriptor 0, if that is no terminal.
    pub stdin: UnixStream,
    /// What it writes at descriptor 1, if that is no terminal.
    pub stdout: UnixStream,
    /// What it writes at descriptor 2, if that is no terminal and not the same as 1.
    pub stderr: UnixStream,
    /// Messages about the others.
    pub messages: UnixStream,
    /// Frames about commands that enter the machine (`core/agent`).
    pub agent: UnixStream,
}

/// Where a stream's socket lies. Short names: the whole path has 107 bytes at most.
pub(crate) fn socket(state: &Path, name: &str) -> PathBuf {
    state.join(format!("{name}.port"))
}

/// Sockets at which QEMU has not called yet.
pub(crate) struct Listeners([UnixListener; NAMES.len()]);

impl Listeners {
    pub(crate) fn bind(state: &Path) -> io::Result<Self> {
        let bind = |name| -> io::Result<UnixListener> {
            let path = socket(state, name);
            // A machine of the same name that was killed has left one behind.
            let _ = std::fs::remove_file(&path);
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let [terminal, stdin, stdout, stderr, messages, agent] = NAMES.map(bind);
        Ok(Self([
            terminal?, stdin?, stdout?, stderr?, messages?, agent?,
        ]))
    }

    /// Waits until QEMU has called at all of them; `None` if it `has_ended` before.
    pub(crate) fn accept(self, mut has_ended: impl FnMut() -> bool) -> Option<Streams> {
        let [terminal, stdin, stdout, stderr, messages, agent] = self.0.map(|listener| {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => return stream.set_nonblocking(false).ok().map(|()| stream),
                    Err(_) if has_ended() => return None,
                    Err(_) => thread::sleep(POLL),
                }
            }
        });
        Some(Streams {
            terminal: terminal?,
            stdin: stdin?,
            stdout: stdout?,
            stderr: stderr?,
            messages: messages?,
            agent: agent?,
        })
    }
}
