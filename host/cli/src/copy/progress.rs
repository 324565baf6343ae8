//! How far a copy is, told at a terminal to somebody who waits.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::flags::told;

/// What takes less needs no word.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two words.
const PERIOD: Duration = Duration::from_millis(200);

/// A line on the terminal, which goes when this is dropped.
pub(super) struct Progress {
    done: u64,
    next: Instant,
    is_shown: bool,
    is_wanted: bool,
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self {
            done: 0,
            next: Instant::now() + SILENCE,
            is_shown: false,
            is_wanted: !is_quiet && io::stderr().is_terminal(),
        }
    }

    /// So many bytes more.
    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if self.is_wanted && Instant::now() >= self.next {
            self.next = Instant::now() + PERIOD;
            self.is_shown = true;
            // A terminal that is gone needs no telling.
            let _ = write!(io::stderr(), "\r\x1b[Ksietch: {} copied", told(self.done));
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Says what was done, to somebody who sits there.
pub(super) fn say(sentence: &str) {
    if io::stderr().is_terminal() {
        eprintln!("sietch: {sentence}");
    }
}
