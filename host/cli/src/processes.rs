//! Which process is which: numbers are reused, within a boot and by the next one.
//!
//! A file that names a process outlives it. So beside the number stands a *mark*, which no other process ever has: the
//! boot's identifier, and when the process started (proc(5): `/proc/PID/stat`, field 22). It stays the same through exec(2).

use std::fs;

/// Behind the program's name in `/proc/PID/stat`.
const START_FIELD: usize = 22 - 3;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of the process with that number, if there is one.
pub fn mark_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    let start = fields.split(' ').nth(START_FIELD)?;
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    Some(format!("{}:{start}", boot.trim()))
}

/// Whether the process is there, runs a program whose name begins so, and is the one of that mark, where there is one.
pub fn is_called(pid: u32, mark: Option<&str>, name: &str) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
    let is_called = comm.is_ok_and(|comm| comm.starts_with(name));
    is_called && mark.is_none_or(|mark| mark_of(pid).as_deref() == Some(mark))
}

/// Whether a `sietch` has that number.
pub fn is_sietch(pid: u32) -> bool {
    is_called(pid, None, "sietch")
}

/// A process as files name it: its number and its mark.
pub fn told(pid: u32) -> String {
    format!("{pid} {}", mark_of(pid).unwrap_or_default())
}

/// Whether the process is there that a file names so.
pub fn is_there(told: &str) -> bool {
    let (pid, mark) = told.trim().split_once(' ').unwrap_or((told.trim(), ""));
    let mark = Some(mark).filter(|mark| !mark.is_empty());
    pid.parse().is_ok_and(|pid| match mark {
        Some(mark) => mark_of(pid).as_deref() == Some(mark),
        None => is_sietch(pid),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_told_from_those_that_have_its_number_before_and_after_it() {
        let own = std::process::id();
        assert!(is_there(&told(own)));
        let mark = mark_of(own).unwrap();
        let (boot, start) = mark.split_once(':').unwrap();
        assert!(!boot.is_empty());
        for other in [format!("{boot}x:{start}"), format!("{boot}:{start}1")] {
            assert!(!is_there(&format!("{own} {other}")), "{other}");
        }
        for gone in ["", "0", "4194999", "x y"] {
            assert!(!is_there(gone), "{gone}");
        }
    }

    #[test]
    fn a_mark_stays_when_the_process_becomes_another_program() {
        let mut child = Command::new("sh")
            .args(["-c", "read go; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let before = mark_of(child.id()).unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"go\n").unwrap();
        let is_cat = || is_called(child.id(), Some(&before), "cat");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !is_cat() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(is_cat());
        drop(input);
        child.wait().unwrap();
        assert!(!is_called(child.id(), Some(&before), "cat"));
    }
}
