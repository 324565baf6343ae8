//! `sietch logs`: shows what a machine's program wrote.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::flags::LogsFlags;
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
    let mut stdout = io::stdout();
    loop {
        // Looked at before the copy, so that the last words are copied too.
        let is_running = folder.running().is_some();
        let copied = io::copy(&mut log, &mut stdout).and_then(|_| stdout.flush());
        if copied.is_err() || !flags.follow || !is_running {
            return Ok(0);
        }
        thread::sleep(POLL);
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
