//! `sietch logs`: shows what a machine's program wrote.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::events::now_ms;
use crate::failure::Failure;
use crate::flags::{LogsFlags, timestamp};
use crate::log::{PIECE_BYTES, Times};
use crate::state::Folder;

const POLL: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn logs(flags: &LogsFlags) -> Result<u8, Failure> {
    let folder = Folder::of(&flags.name);
    let path = folder.console_log();
    let mut log = File::open(&path).map_err(|_| Failure::NoSuchMachine {
        name: flags.name.clone(),
    })?;
    if let Some(lines) = flags.tail {
        let start = start_of_last(&mut log, lines).map_err(Failure::file(&path))?;
        log.seek(SeekFrom::Start(start))
            .map_err(Failure::file(&path))?;
    }
    let mut shown = Shown::new(flags, log, &path);
    loop {
        // Looked at before the copy, so that the last words are copied too.
        let is_served = folder
            .settings()
            .is_some_and(|settings| settings.is_served());
        let is_last = !flags.follow || !is_served;
        let copied = shown.copy(is_last);
        if copied.is_err() || is_last {
            return Ok(0);
        }
        thread::sleep(POLL);
    }
}

/// What is shown of a log.
struct Shown<'a> {
    reader: BufReader<File>,
    path: &'a Path,
    /// The line that has not ended yet, or the next part of one that is longer than [`PIECE_BYTES`], and where it began.
    line: Vec<u8>,
    at: u64,
    /// Whether it goes on with a line whose first part was shown.
    is_part: bool,
    since_ms: u64,
    until_ms: u64,
    has_times: bool,
    is_plain: bool,
}

impl<'a> Shown<'a> {
    fn new(flags: &LogsFlags, mut log: File, path: &'a Path) -> Self {
        let now = now_ms();
        Self {
            at: log.stream_position().unwrap_or(0),
            reader: BufReader::new(log),
            path,
            line: Vec::new(),
            is_part: false,
            since_ms: flags.since.map_or(0, |since| since.at_ms(now)),
            until_ms: flags.until.map_or(u64::MAX, |until| until.at_ms(now)),
            has_times: flags.timestamps,
            is_plain: !flags.timestamps && flags.since.is_none() && flags.until.is_none(),
        }
    }

    /// Copies what is new; of a line that has no end yet only if it `is_last`, or if lines do not matter.
    fn copy(&mut self, is_last: bool) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.is_plain {
            io::copy(&mut self.reader, &mut stdout)?;
            return stdout.flush();
        }
        let times = Times::read(self.path);
        loop {
            self.read_line()?;
            let has_end = self.line.ends_with(b"\n");
            let is_whole = has_end || self.line.len() == PIECE_BYTES;
            if self.line.is_empty() || !is_whole && !is_last {
                return stdout.flush();
            }
            let ms = times.at(self.at).unwrap_or(0);
            self.at += self.line.len() as u64;
            if (self.since_ms..=self.until_ms).contains(&ms) {
                if self.has_times && !self.is_part {
                    write!(stdout, "{} ", timestamp(ms))?;
                }
                stdout.write_all(&self.line)?;
            }
            self.is_part = !has_end;
            self.line.clear();
        }
    }

    /// Goes on with a line until its end, or until it is long.
    fn read_line(&mut self) -> io::Result<()> {
        let left = PIECE_BYTES.saturating_sub(self.line.len());
        let mut rest = self.reader.by_ref().take(left as u64);
        rest.read_until(b'\n', &mut self.line).map(drop)
    }
}

/// Where the last `count` lines of a file begin.
fn start_of_last(file: &mut impl Read, count: usize) -> io::Result<u64> {
    // The last one may be empty, and none then.
    let mut starts = VecDeque::from([0]);
    let mut at = 0;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let len = file.read(&mut piece)?;
        if len == 0 {
            break;
        }
        for (offset, _) in (at..)
            .zip(&piece[..len])
            .filter(|(_, byte)| **byte == b'\n')
        {
            starts.push_back(offset + 1);
            if starts.len() > count.saturating_add(1) {
                starts.pop_front();
            }
        }
        at += len as u64;
    }
    if starts.back() == Some(&at) {
        starts.pop_back();
    }
    if starts.len() > count {
        starts.pop_front();
    }
    Ok(starts.front().copied().unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_last_lines_are_found_whether_or_not_the_very_last_one_ends() {
        let start = |text: &str, count| {
            start_of_last(&mut Cursor::new(text.as_bytes()), count).expect("readable")
        };
        assert_eq!(start("a\nbb\nc\n", 2), 2);
        assert_eq!(start("a\nbb\nc", 1), 5);
        assert_eq!(start("a\nbb\n", 9), 0);
        assert_eq!(start("a\n", 0), 2);
        assert_eq!(start("", 3), 0);
        assert_eq!(start("a\nb\n", usize::MAX), 0);
        let long = "x".repeat(2 * PIECE_BYTES);
        assert_eq!(
            start(&format!("{long}\ny\n"), 1),
            2 * PIECE_BYTES as u64 + 1
        );
    }
}
