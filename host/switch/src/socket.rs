//! The switch's end of one port: it calls until somebody listens, and again when the connection ends.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::stream::{Inbox, Outbox};

/// Between two calls at first, and at most.
const SOON: Duration = Duration::from_millis(5);
const LATE: Duration = Duration::from_secs(1);

/// A port's connection.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    stream: Option<UnixStream>,
    /// What came.
    pub inbox: Inbox,
    outbox: Outbox,
    next_call: Instant,
    pause: Duration,
}

/// Why a frame was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotQueued {
    /// Nobody is there.
    NotConnected,
    /// Too many wait.
    Full,
}

impl Socket {
    /// To whoever listens at `path`.
    pub fn new(path: PathBuf, now: Instant) -> Self {
        Self {
            path,
            stream: None,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            next_call: now,
            pause: SOON,
        }
    }

    /// The connection, while there is one.
    pub fn stream(&self) -> Option<&UnixStream> {
        self.stream.as_ref()
    }

    /// When to call next, if it is not connected.
    pub fn next_call(&self) -> Option<Instant> {
        self.stream.is_none().then_some(self.next_call)
    }

    /// Calls if it is time; whether somebody has just answered.
    pub fn call(&mut self, now: Instant) -> bool {
        if self.stream.is_some() || now < self.next_call {
            return false;
        }
        let called = UnixStream::connect(&self.path);
        let called = called.and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
        match called {
            Ok(stream) => {
                self.stream = Some(stream);
                self.pause = SOON;
            }
            Err(_) => {
                self.next_call = now + self.pause;
                self.pause = LATE.min(self.pause * 2);
            }
        }
        self.stream.is_some()
    }

    /// Ends the connection; what waits is lost.
    pub fn cut(&mut self, now: Instant) {
        self.stream = None;
        self.inbox = Inbox::default();
        self.outbox = Outbox::default();
        self.next_call = now + self.pause;
    }

    /// Whether something waits for the receiver.
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether the receiver keeps up.
    pub fn keeps_up(&self) -> bool {
        self.outbox.len() < crate::stream::QUEUE_BYTES_MAX / 2
    }

    /// Queues a frame.
    pub fn queue(&mut self, frame: &[u8]) -> Result<(), NotQueued> {
        match (&self.stream, self.outbox.push(frame)) {
            (None, _) => {
                self.outbox = Outbox::default();
                Err(NotQueued::NotConnected)
            }
            (Some(_), true) => Ok(()),
            (Some(_), false) => Err(NotQueued::Full),
        }
    }

    /// Sends what the receiver takes now.
    pub fn flush(&mut self, now: Instant) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        if self.outbox.flush(stream).is_err() {
            self.cut(now);
        }
    }

    /// Reads once; false if nothing more has come.
    pub fn fill(&mut self, now: Instant) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        match self.inbox.fill(stream) {
            Ok(0) => self.cut(now),
            Ok(_) => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.cut(now),
        }
        false
    }
}
