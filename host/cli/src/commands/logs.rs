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
use crate::log::Times;
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
    /// The line that has not ended yet, and where it began.
    line: Vec<u8>,
    at: u64,
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
        while self.reader.read_until(b'\n', &mut self.line)? > 0 {
            if !self.line.ends_with(b"\n") && !is_last {
                break;
            }
            let ms = times.at(self.at).unwrap_or(0);
            self.at += self.line.len() as u64;
            if (self.since_ms..=self.until_ms).contains(&ms) {
                if self.has_times {
                    write!(stdout, "{} ", timestamp(ms))?;
                }
                stdout.write_all(&self.line)?;
            }
            self.line.clear();
        }
        stdout.flush()
    }
}

/// Where the last `count` lines of a file begin.
fn start_of_last(file: &mut (impl Read + Seek), count: usize) -> io::Result<u64> {
    let mut starts = VecDeque::new();
    let mut at = 0;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let len = reader.read_until(b'\n', &mut line)?;
        if len == 0 {
            return Ok(starts.front().copied().unwrap_or(at));
        }
        starts.push_back(at);
        at += len as u64;
        if starts.len() > count {
            starts.pop_front();
        }
    }
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
    }
}
