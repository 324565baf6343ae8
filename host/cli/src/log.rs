//! What a machine's program wrote, with the times when it did: `console.log`, and beside it `console.times`.
//!
//! The second holds records of 16 bytes, each an offset in the first and milliseconds since the epoch, little endian: what
//! begins there was written then. There is one for each moment at which something came, at most one in
//! [`GRAIN_MS`], so that a program that writes much does not double what is kept.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::events::now_ms;

/// Milliseconds that are one moment.
const GRAIN_MS: u64 = 10;
const RECORD_BYTES: usize = 16;

/// Where the times of that log are.
fn times_file(log: &Path) -> PathBuf {
    log.with_extension("times")
}

/// A log that is written; its clones are one.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    log: File,
    times: File,
    last_ms: Option<u64>,
}

impl Log {
    /// Goes on with the log at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(Arc::new(Mutex::new(State {
            log: open(path)?,
            times: open(&times_file(path))?,
            last_ms: None,
        }))))
    }

    /// Adds what came just now. It is for reading afterwards: that it cannot be written stops nobody.
    pub fn add(&self, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now_ms();
        if state.last_ms.is_none_or(|last| now >= last + GRAIN_MS) {
            // Others, whose standard error is the log, write to it too.
            let offset = state.log.metadata().map_or(0, |file| file.len());
            let record = [offset.to_le_bytes(), now.to_le_bytes()].concat();
            let _ = state.times.write_all(&record);
            state.last_ms = Some(now);
        }
        let _ = state.log.write_all(bytes);
    }
}

/// The times of a log: offsets and milliseconds since the epoch, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(Vec<(u64, u64)>);

impl Times {
    /// Those of the log at `path`.
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(times_file(path)).unwrap_or_default();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let records = bytes.chunks_exact(RECORD_BYTES);
        Self(
            records
                .map(|record| (number(&record[..8]), number(&record[8..])))
                .collect(),
        )
    }

    /// When what is at `offset` was written.
    pub fn at(&self, offset: u64) -> Option<u64> {
        let after = self.0.partition_point(|(start, _)| *start <= offset);
        self.0.get(after.checked_sub(1)?).map(|(_, ms)| *ms)
    }
}

/// As much of a log is read at once.
pub const PIECE_BYTES: usize = 64 * 1024;

/// The lines of a log that is read piece by piece; one that is longer than [`PIECE_BYTES`] comes in parts.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// One that has not ended.
    begun: Vec<u8>,
}

impl Lines {
    /// Takes the next piece, and calls `each` for each line, with its end, or part of one.
    pub fn add(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            for part in line.chunks(PIECE_BYTES) {
                let is_too_long = self.begun.len() + part.len() > PIECE_BYTES;
                if is_too_long {
                    self.end(&mut each);
                }
                self.begun.extend_from_slice(part);
            }
            if line.ends_with(b"\n") {
                self.end(&mut each);
            }
        }
    }

    /// What has not ended is a line now.
    pub fn end(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            each(&self.begun);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_the_time_of_what_came_last_before_it() {
        let times = Times(vec![(0, 100), (10, 200)]);
        assert_eq!(
            (times.at(0), times.at(9), times.at(10)),
            (Some(100), Some(100), Some(200))
        );
        assert_eq!(Times::default().at(5), None);
    }

    #[test]
    fn lines_come_whole_however_they_are_read_and_none_is_longer_than_a_piece() {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for piece in ["one\ntw", "o", "\n", "three"] {
            lines.add(piece.as_bytes(), |line| seen.push(line.to_vec()));
        }
        assert_eq!(seen, [&b"one\n"[..], b"two\n"]);
        let long = "x".repeat(3 * PIECE_BYTES);
        lines.add(long.as_bytes(), |line| seen.push(line.to_vec()));
        lines.end(|line| seen.push(line.to_vec()));
        assert!(seen.iter().all(|line| line.len() <= PIECE_BYTES));
        let whole = ["one\ntwo\nthree", &long].concat();
        assert!(seen.concat() == whole.as_bytes());
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        let path = std::env::temp_dir().join(format!("sietch-log-{}.log", std::process::id()));
        let before = now_ms();
        let log = Log::open(&path).unwrap();
        log.add(b"one\n");
        log.add(b"two\n");
        let times = Times::read(&path);
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert!(
            times
                .at(4)
                .is_some_and(|ms| (before..=now_ms()).contains(&ms))
        );
        for path in [times_file(&path), path] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
