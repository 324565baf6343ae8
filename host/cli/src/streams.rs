//! Bytes between our descriptors and a machine's streams, a thread for each direction.
//!
//! Nothing here holds more than a buffer: who reads slowly lets the other side wait. Where
//! the program's reader has gone, the stream is closed, so that the program gets SIGPIPE.
//! Where no program holds its output any more, ours is closed, as soon as all of it is
//! copied: its size comes by the stream of messages.
//!
//! What goes out is kept in the machine's log as well, and shown to who is attached (`attach`).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};

use crate::attach::viewers::{Output, Viewers};
use crate::log::Log;
use crate::stdio::Window;

/// Bytes copied at once.
const BUFFER_BYTES: usize = 64 << 10;
/// A message of the kernel's: `C descriptor[1] bytes[8]`.
const CLOSED_BYTES: usize = 10;

/// Where a stream of the program's goes on this host.
#[derive(Clone, Debug)]
pub struct Outlet {
    state: Arc<Mutex<State>>,
    /// Who else sees it, and as what.
    viewers: Viewers,
    output: Output,
}

#[derive(Debug)]
struct State {
    /// `None` once it is closed, or if nobody sees it.
    to: Option<File>,
    copied: u64,
    /// When so many bytes are copied, it is closed.
    ends_at: Option<u64>,
}

impl Outlet {
    /// Leads to `to`; only to the log and to `viewers` if that is `None`.
    pub fn new(to: Option<File>, viewers: &Viewers, output: Output) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                to,
                copied: 0,
                ends_at: None,
            })),
            viewers: viewers.clone(),
            output,
        }
    }

    /// Copies everything from `stream` until its end, or until nobody reads here.
    pub fn copy_from(&self, mut stream: UnixStream, log: &Log) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            log.add(&buffer[..len]);
            self.viewers.show(self.output, &buffer[..len]);
            if self.with(|state| state.write(&buffer[..len])).is_err() {
                return;
            }
        }
    }

    /// No program holds the stream any more, to which `bytes` were written.
    fn end_at(&self, bytes: u64) {
        self.with(|state| {
            state.ends_at = Some(bytes);
            state.close_at_end();
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(to) = &mut self.to {
            write_all(to, bytes)?;
        }
        self.copied += bytes.len() as u64;
        self.close_at_end();
        Ok(())
    }

    fn close_at_end(&mut self) {
        if self.ends_at == Some(self.copied) {
            self.to = None;
        }
    }
}

/// Copies what comes from `from` to `stream`, and ends it at the end; `look` sees it first.
pub fn copy_in(mut from: File, mut stream: UnixStream, mut look: impl FnMut(&[u8])) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(len @ 1..) = read(&mut from, &mut buffer) {
        look(&buffer[..len]);
        if stream.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
    // Closing it altogether could take with it what QEMU has not read yet; it may also be
    // gone, with the machine.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read(&mut [0; 1]);
}

/// Obeys the kernel's messages about descriptor 1, which leads to `output`.
pub fn obey_messages(mut messages: UnixStream, output: &Outlet) {
    let mut message = [0; CLOSED_BYTES];
    while messages.read_exact(&mut message).is_ok() {
        if let [b'C', 1, bytes @ ..] = message {
            output.end_at(u64::from_le_bytes(bytes));
        }
    }
}

/// Tells the kernel the window's new size.
pub fn send_window(messages: &mut UnixStream, window: Window) -> io::Result<()> {
    let [r0, r1] = window.rows.to_le_bytes();
    let [c0, c1] = window.columns.to_le_bytes();
    messages.write_all(&[b'W', r0, r1, c0, c1])
}

/// Writes all, also where whoever shares the file has made it non-blocking.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) => wait_if_blocked(to, PollFlags::OUT, error)?,
        }
    }
    Ok(())
}

/// Reads, also where whoever shares the file has made it non-blocking.
fn read(from: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Ok(len) => return Ok(len),
            Err(error) => wait_if_blocked(from, PollFlags::IN, error)?,
        }
    }
}

fn wait_if_blocked(file: &File, events: PollFlags, error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::Interrupted => Ok(()),
        ErrorKind::WouldBlock => {
            let mut files = [PollFd::from_borrowed_fd(file.as_fd(), events)];
            // Interrupted or not, the file is tried again.
            let _ = poll(&mut files, None);
            Ok(())
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A log that nobody reads.
    fn no_log(name: &str) -> Log {
        let name = format!("sietch-streams-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("room");
        let log = Log::open(&folder.join("console.log")).expect("room");
        // What is open stays so.
        let _ = std::fs::remove_dir_all(folder);
        log
    }

    fn outlet(to: File) -> Outlet {
        Outlet::new(Some(to), &Viewers::default(), Output::Out)
    }

    #[test]
    fn an_output_that_no_program_holds_is_closed_once_all_of_it_is_copied() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let outlet = outlet(File::from(std::os::fd::OwnedFd::from(writer)));
        let (mut kernel, stream) = UnixStream::pair().expect("sockets");
        let log = no_log("closed");
        // The word about the end may be faster than the bytes.
        outlet.end_at(3);
        let copier = outlet.clone();
        let copying = thread::spawn(move || copier.copy_from(stream, &log));
        kernel.write_all(b"abc").expect("read");
        let mut seen = Vec::new();
        let mut reader = reader;
        reader.read_to_end(&mut seen).expect("ends");
        assert_eq!(seen, b"abc");
        drop(kernel);
        copying.join().expect("ends with its stream");
    }

    #[test]
    fn a_stream_is_closed_when_nobody_reads_what_it_brings() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let outlet = outlet(File::from(std::os::fd::OwnedFd::from(writer)));
        let (mut kernel, stream) = UnixStream::pair().expect("sockets");
        let log = no_log("unread");
        kernel.write_all(b"abc").expect("room");
        outlet.copy_from(stream, &log);
        assert_eq!(kernel.read(&mut [0; 1]).expect("its end"), 0);
    }
}
