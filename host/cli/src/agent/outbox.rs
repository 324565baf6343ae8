//! What waits in the session for one client.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use agent::{HEADER_BYTES, WINDOW_BYTES};

/// As much as the client's window lets the machine send, each byte in a frame of its own; more comes only from
/// a machine that breaks the rules.
const BYTES_MAX: usize = WINDOW_BYTES as usize * (HEADER_BYTES + 1) + 4096;

/// Frames on their way to a client.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    /// Nothing more comes.
    is_closed: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame, or closes if the machine sends more than it may.
    pub fn put(&self, frame: &[u8]) {
        let mut state = self.lock();
        if state.bytes.len() + frame.len() > BYTES_MAX {
            state.is_closed = true;
        } else if !state.is_closed {
            state.bytes.extend(frame);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Brings everything to the client, until the outbox is closed or the client has gone.
    pub fn deliver(&self, mut client: &UnixStream) {
        loop {
            let mut state = self.lock();
            while state.bytes.is_empty() && !state.is_closed {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let bytes: Vec<u8> = state.bytes.drain(..).collect();
            drop(state);
            if bytes.is_empty() || client.write_all(&bytes).is_err() {
                return;
            }
        }
    }
}
