//! Telling how far an image is while it is made, to somebody who looks.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::flags::told;

/// What takes less needs no word.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two words.
const PERIOD: Duration = Duration::from_millis(200);

/// A line on the terminal, which goes when this is dropped.
pub(super) struct Progress {
    what: String,
    file: PathBuf,
    whole_bytes: u64,
    next: Instant,
    is_shown: bool,
    has_terminal: bool,
}

impl Progress {
    /// Of `file`, which is to hold so many bytes.
    pub(super) fn new(what: String, file: PathBuf, whole_bytes: u64) -> Self {
        Self {
            what,
            file,
            whole_bytes,
            next: Instant::now() + SILENCE,
            is_shown: false,
            has_terminal: io::stderr().is_terminal(),
        }
    }

    /// Looks and tells.
    pub(super) fn tell(&mut self) {
        if !self.has_terminal || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PERIOD;
        self.is_shown = true;
        let done = fs::metadata(&self.file).map_or(0, |metadata| metadata.blocks() * 512);
        let whole = self.whole_bytes.max(1);
        let percent = (u128::from(done.min(whole)) * 100 / u128::from(whole)) as u64;
        let line = format!(
            "{}: {} of {} ({percent} %)",
            self.what,
            told(done),
            told(whole)
        );
        // A terminal that is gone needs no telling.
        let _ = write!(io::stderr(), "\r\x1b[Ksietch: {line}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
