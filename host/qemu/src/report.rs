//! What the kernel told the host on COM2, read after the machine ended.
//!
//! The lines that carry meaning, with `key=value` fields split by spaces:
//!
//! ```text
//! sietch: exit status=N
//! sietch: restart
//! sietch: killed signal=11 name=SIGSEGV addr=0x0 ip=0x401000 in=/usr/bin/redis-server+0x1000
//! sietch: killed PROGRAM (12): out of memory; it used 90 MiB of 124 MiB
//! sietch: device e1000 refused: page 1 of 16 lies at 0x5000 and not at 0x2000
//! sietch: links refused: line 3: there is no link vnic1
//! sietch: stalled ring=0 frames=17 seconds=6 outcome=reset
//! sietch: stray device=00:1e.0 write=0x80000 unsaid=0 why=not mapped
//! sietch: panic kernel/task/src/x.rs:12: what happened
//! sietch: frame 0xffffffff80001234
//! sietch: missing syscall=NAME count=N prog=NAME
//! sietch: missing option=NAME count=N prog=NAME
//! sietch: absent path=/etc/apache2/apache2.conf
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::symbols::Symbols;
use crate::{ORDERLY_EXIT, RESET_EXIT};

/// Exit status of the command after the kernel's own failure: `EX_SOFTWARE` of sysexits(3).
pub const KERNEL_FAILED_STATUS: u8 = 70;

/// How a machine ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited.
    Exited {
        /// Its status.
        status: u8,
    },
    /// A program restarted the machine, which is how QEMU ends.
    Restarted,
    /// The program was killed by a signal.
    Killed {
        /// The signal's number.
        signal: u8,
        /// `SIGSEGV at address 0x0 in /usr/bin/redis-server+0x1000`
        how: String,
    },
    /// The kernel panicked.
    Panicked {
        /// Its last words.
        message: String,
        /// Return addresses, innermost first.
        frames: Vec<u64>,
    },
    /// QEMU ended without a word from the kernel.
    Lost {
        /// QEMU's exit status, if it exited.
        qemu_status: Option<i32>,
    },
}

/// Everything that the kernel reported.
#[derive(Debug)]
pub struct Report {
    /// How the machine ended.
    pub ending: Ending,
    /// What programs asked for and the kernel lacks: sentences.
    pub missing: Vec<String>,
    /// Which programs the kernel killed because memory ran out: sentences.
    pub starved: Vec<String>,
    /// Which devices the kernel did not start, which stood still, and which reached for memory
    /// of others: sentences.
    pub devices: Vec<String>,
    /// Paths that a packed program which failed, or one that it ran, looked for in vain.
    pub absent: Vec<PathBuf>,
}

/// The signal of a program that writes to a pipe which nobody reads.
const SIGPIPE: u8 = 13;
/// Signals by which a program is asked to end, which one that does not care does at once.
const SIGHUP: u8 = 1;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;
/// Signals that a program's own instructions raise, and that have a place in it: SIGILL, SIGTRAP, SIGABRT, SIGBUS,
/// SIGFPE, SIGSEGV and SIGSYS.
const FAULTS: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];
/// A program that asks for more kinds of things than this is no program but a test.
const MISSING_SHOWN_MAX: usize = 20;
/// The first victims tell enough.
const STARVED_SHOWN_MAX: usize = 5;
/// A machine has few devices.
const DEVICES_SHOWN_MAX: usize = 5;

impl Report {
    /// Reads a kernel log after QEMU ended with `qemu_status`.
    pub fn parse(log: &str, qemu_status: Option<i32>) -> Self {
        let said: Vec<&str> = log
            .lines()
            .filter_map(|line| line.trim_end().strip_prefix("sietch: "))
            .collect();
        let missing = said.iter().filter_map(|line| parse_missing(line)).collect();
        // A killed program's status follows on a line of its own and adds nothing.
        let ending = parse_panic(&said)
            .or_else(|| said.iter().find_map(|line| parse_killed(line)))
            .or_else(|| said.iter().find_map(|line| parse_exit(line)))
            .filter(|ending| match ending {
                Ending::Panicked { .. } => true,
                Ending::Restarted => qemu_status == Some(RESET_EXIT),
                _ => qemu_status == Some(ORDERLY_EXIT),
            })
            .unwrap_or(Ending::Lost { qemu_status });
        let starved = said.iter().filter_map(|line| parse_starved(line)).collect();
        let of_device = |line: &&str| {
            let refused = parse_refused(line).or_else(|| parse_links(line));
            refused
                .or_else(|| parse_stalled(line))
                .or_else(|| parse_stray(line))
        };
        let devices = said.iter().filter_map(of_device).collect();
        let absent = said.iter().filter_map(|line| parse_absent(line)).collect();
        Self {
            ending,
            missing,
            starved,
            devices,
            absent,
        }
    }

    /// Whether the program itself said that it failed, or was killed for what it did.
    pub fn has_failed(&self) -> bool {
        match self.ending {
            Ending::Exited { status } => status != 0,
            Ending::Killed { signal, .. } => FAULTS.contains(&signal),
            Ending::Restarted | Ending::Panicked { .. } | Ending::Lost { .. } => false,
        }
    }

    /// The exit status for the host's shell.
    pub fn status(&self) -> u8 {
        match self.ending {
            Ending::Exited { status } => status,
            Ending::Restarted => 0,
            Ending::Killed { signal, .. } => 128 | signal,
            Ending::Panicked { .. } | Ending::Lost { .. } => KERNEL_FAILED_STATUS,
        }
    }

    /// What to tell the user, a line each; nothing if all went well.
    pub fn sentences(&self, program: &str, kernel: &Path) -> Vec<String> {
        let mut sentences = match &self.ending {
            Ending::Exited { .. } => vec![],
            Ending::Restarted => vec![format!(
                "{program} restarted the machine, which ends it here: run it again."
            )],
            // Who read its output has had enough, as `head` does: no shell says a word.
            Ending::Killed {
                signal: SIGPIPE, ..
            } => vec![],
            Ending::Killed {
                signal: SIGTERM | SIGINT | SIGHUP,
                how,
            } => vec![format!("{program} was asked to end by {how}, and did.")],
            Ending::Killed { how, .. } => vec![format!("{program} was killed by {how}.")],
            Ending::Panicked { message, frames } => describe_panic(message, frames, kernel),
            Ending::Lost { qemu_status } => vec![match qemu_status {
                Some(status) => format!(
                    "The machine ended without a word from its kernel (QEMU's status was {status}): look at its kernel.log."
                ),
                None => "QEMU was killed.".to_string(),
            }],
        };
        sentences.extend(self.devices.iter().take(DEVICES_SHOWN_MAX).cloned());
        sentences.extend(self.starved.iter().take(STARVED_SHOWN_MAX).cloned());
        sentences.extend(self.missing.iter().take(MISSING_SHOWN_MAX).cloned());
        if let Some(more @ 1..) = self.missing.len().checked_sub(MISSING_SHOWN_MAX) {
            sentences.push(format!(
                "... and for {more} other things; the machine's kernel.log has them all."
            ));
        }
        sentences
    }
}

fn describe_panic(message: &str, frames: &[u64], kernel: &Path) -> Vec<String> {
    let symbols = Symbols::read(kernel);
    let mut lines = vec![format!("The kernel panicked: {message}")];
    for frame in frames {
        // A return address points past the call: one byte back lies inside of it.
        let names = symbols
            .as_ref()
            .map(|symbols| symbols.describe(frame.wrapping_sub(1)));
        let names = names
            .filter(|names| !names.is_empty())
            .unwrap_or_else(|| vec!["?".into()]);
        lines.extend(names.iter().map(|name| format!("  {frame:#x} {name}")));
    }
    lines
}

fn parse_panic(said: &[&str]) -> Option<Ending> {
    let start = said.iter().position(|line| line.starts_with("panic"))?;
    let message = said[start]
        .strip_prefix("panic")
        .unwrap_or("")
        .trim()
        .to_string();
    let frames = said[start..]
        .iter()
        .filter_map(|line| parse_hex(line.strip_prefix("frame ")?));
    Some(Ending::Panicked {
        message,
        frames: frames.collect(),
    })
}

fn parse_exit(line: &str) -> Option<Ending> {
    if line == "restart" {
        return Some(Ending::Restarted);
    }
    let status: i64 = field(line.strip_prefix("exit ")?, "status")?.parse().ok()?;
    Some(Ending::Exited {
        status: (status & 0xff) as u8,
    })
}

fn parse_killed(line: &str) -> Option<Ending> {
    if parse_starved(line).is_some() {
        return None;
    }
    let line = line.strip_prefix("killed ")?;
    let signal = field(line, "signal")?.parse().ok()?;
    let name = field(line, "name").map_or_else(|| format!("signal {signal}"), str::to_string);
    if !FAULTS.contains(&signal) {
        return Some(Ending::Killed { signal, how: name });
    }
    let address = field(line, "addr").map(|address| format!(" at address {address}"));
    let place = field(line, "in")
        .or(field(line, "ip"))
        .map(|place| format!(" in {place}"));
    let how = format!(
        "{name}{}{}",
        address.unwrap_or_default(),
        place.unwrap_or_default()
    );
    Some(Ending::Killed { signal, how })
}

/// `memhog (12)` and what it used, of the line about a process that was killed for memory.
fn parse_starved(line: &str) -> Option<String> {
    let (who, used) = line
        .strip_prefix("killed ")?
        .split_once(": out of memory; ")?;
    Some(format!("{who} was killed: out of memory; {used}."))
}

/// `device NAME refused: WHY`.
fn parse_refused(line: &str) -> Option<String> {
    let (name, why) = line.strip_prefix("device ")?.split_once(" refused: ")?;
    Some(format!("The device {name} was not started: {why}."))
}

/// `links refused: WHY`: what was kept of links and is not there now.
fn parse_links(line: &str) -> Option<String> {
    let why = line.strip_prefix("links refused: ")?;
    Some(format!("/etc/dladm/datalink.conf: {why}."))
}

/// What the watchdog of a card's transmit queue found.
fn parse_stalled(line: &str) -> Option<String> {
    let line = line.strip_prefix("stalled ")?;
    let [ring, frames, seconds] =
        ["ring", "frames", "seconds"].map(|key| field(line, key).unwrap_or("?"));
    let outcome = match field(line, "outcome")? {
        "reset" => "was reset, and they are lost",
        "reminded" => "was told of them again",
        _ => "does not obey a reset",
    };
    Some(format!(
        "Transmit queue {ring} of the network card sent none of {frames} frames for {seconds} s; it {outcome}."
    ))
}

/// What an IOMMU refused to a device.
fn parse_stray(line: &str) -> Option<String> {
    let line = line.strip_prefix("stray ")?;
    let device = field(line, "device")?;
    let write = field(line, "write").map(|at| ("write to", at));
    let (access, at) = write.or(field(line, "read").map(|at| ("read of", at)))?;
    let (_, why) = line.split_once("why=")?;
    let unsaid = match field(line, "unsaid") {
        None | Some("0") => String::new(),
        Some(count) => format!(" {count} such requests before it were not logged."),
    };
    Some(format!(
        "The IOMMU refused the device {device} a {access} memory at {at}: {why}.{unsaid}"
    ))
}

fn parse_missing(line: &str) -> Option<String> {
    let line = line.strip_prefix("missing ")?;
    let what = match field(line, "syscall") {
        Some(name) => format!("the system call {}", call_name(name)),
        None => format!("the option {}", field(line, "option")?),
    };
    let program = field(line, "prog").unwrap_or("A program");
    let count = field(line, "count").unwrap_or("1");
    Some(format!(
        "{program} asked {count} times for {what}, which Sietch lacks."
    ))
}

/// The kernel knows no names of calls that it lacks, only their numbers.
fn call_name(word: &str) -> String {
    let known = word.parse().ok().and_then(syscalls::x86_64::Sysno::new);
    known.map_or_else(|| word.to_string(), |call| call.name().to_string())
}

/// The rest of the line, in which what is no plain character of ASCII is escaped.
fn parse_absent(line: &str) -> Option<PathBuf> {
    let mut escaped = line.strip_prefix("absent path=")?.bytes();
    let mut path = Vec::new();
    while let Some(byte) = escaped.next() {
        path.push(match (byte, byte == b'\\') {
            (_, false) => byte,
            _ => match escaped.next()? {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                b'x' => {
                    let digits = [escaped.next()?, escaped.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                other => other,
            },
        });
    }
    Some(OsString::from_vec(path).into())
}

/// The value of `key=value` in a line.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ')
        .find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(log: &str) -> Ending {
        Report::parse(log, Some(ORDERLY_EXIT)).ending
    }

    #[test]
    fn the_status_of_the_program_is_passed_on() {
        let report = Report::parse("hello\nsietch: exit status=3\n", Some(ORDERLY_EXIT));
        assert_eq!(report.ending, Ending::Exited { status: 3 });
        assert_eq!(report.status(), 3);
        assert!(report.sentences("a", Path::new("/none")).is_empty());
    }

    #[test]
    fn a_killed_program_is_named_with_its_place() {
        let log = "sietch: killed signal=11 name=SIGSEGV addr=0x10 ip=0x401000 in=/usr/bin/a+0x1000\nsietch: exit status=139\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(report.status(), 139);
        assert_eq!(
            report.sentences("a", Path::new("/none")),
            ["a was killed by SIGSEGV at address 0x10 in /usr/bin/a+0x1000."]
        );
    }

    #[test]
    fn a_program_that_was_asked_to_end_is_not_said_to_have_crashed() {
        let log = "sietch: killed signal=15 name=SIGTERM addr=0x0 ip=0x401000 in=/usr/bin/a+0x1000\nsietch: exit status=143\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(report.status(), 143);
        assert_eq!(
            report.sentences("a", Path::new("/none")),
            ["a was asked to end by SIGTERM, and did."]
        );
        let killed = Report::parse(
            &log.replace("15 name=SIGTERM", "9 name=SIGKILL"),
            Some(ORDERLY_EXIT),
        );
        assert_eq!(
            killed.sentences("a", Path::new("/none")),
            ["a was killed by SIGKILL."]
        );
    }

    #[test]
    fn a_restart_is_no_failure_where_it_came_to_that() {
        let report = Report::parse("sietch: restart\n", Some(RESET_EXIT));
        assert_eq!(report.ending, Ending::Restarted);
        assert_eq!(report.status(), 0);
        let sentences = report.sentences("a", Path::new("/none"));
        assert!(sentences[0].starts_with("a restarted the machine"));
        let lost = Report::parse("sietch: restart\n", Some(1));
        assert_eq!(lost.status(), KERNEL_FAILED_STATUS);
    }

    #[test]
    fn programs_killed_for_memory_are_told_whatever_the_ending() {
        let log = "sietch: killed signal=9 x (7): out of memory; it used 90 MiB of 124 MiB\nsietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(report.status(), 0);
        assert_eq!(
            report.sentences("a", Path::new("/none")),
            ["signal=9 x (7) was killed: out of memory; it used 90 MiB of 124 MiB."]
        );
    }

    #[test]
    fn a_panic_wins_over_everything_and_keeps_its_frames() {
        let log =
            "sietch: exit status=0\nsietch: panic a.rs:1: no\nsietch: frame 0xffffffff80000010\n";
        let report = Report::parse(log, Some(1));
        assert_eq!(report.status(), KERNEL_FAILED_STATUS);
        let frames = vec![0xffff_ffff_8000_0010];
        assert_eq!(
            report.ending,
            Ending::Panicked {
                message: "a.rs:1: no".into(),
                frames
            }
        );
    }

    #[test]
    fn an_end_without_a_word_is_the_kernels_failure() {
        assert_eq!(
            ending(""),
            Ending::Lost {
                qemu_status: Some(ORDERLY_EXIT)
            }
        );
        let cut_off = Report::parse("sietch: exit status=0\n", Some(0));
        assert_eq!(
            cut_off.ending,
            Ending::Lost {
                qemu_status: Some(0)
            }
        );
    }

    #[test]
    fn what_is_missing_is_listed() {
        let log = "sietch: missing syscall=425 count=2 prog=node\nsietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(
            report.missing,
            ["node asked 2 times for the system call io_uring_setup, which Sietch lacks."]
        );
    }

    #[test]
    fn paths_that_led_nowhere_come_whole_whatever_is_in_them() {
        let log = "sietch: absent path=/etc/a b\nsietch: absent path=/\\xff\\'\\\\\\n\nsietch: absent path=/\\x\nsietch: exit status=1\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        let odd = OsString::from_vec(b"/\xff'\\\n".to_vec());
        assert_eq!(report.absent, [PathBuf::from("/etc/a b"), odd.into()]);
        assert!(report.has_failed());
        assert!(report.sentences("a", Path::new("/none")).is_empty());
    }

    #[test]
    fn one_that_was_asked_to_end_has_not_failed() {
        let failed = |log: &str| Report::parse(log, Some(ORDERLY_EXIT)).has_failed();
        assert!(!failed("sietch: exit status=0\n"));
        assert!(!failed("sietch: killed signal=15 name=SIGTERM\n"));
        assert!(failed("sietch: killed signal=6 name=SIGABRT\n"));
        assert!(!failed(""));
    }

    #[test]
    fn a_device_that_was_refused_is_named_with_the_reason() {
        let log = "sietch: device e1000 refused: NoBuffers\nsietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(
            report.devices,
            ["The device e1000 was not started: NoBuffers."]
        );
    }

    #[test]
    fn a_kept_link_that_was_refused_is_named_with_its_line() {
        let log = "sietch: links refused: line 3: no record of ours\nsietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(
            report.devices,
            ["/etc/dladm/datalink.conf: line 3: no record of ours."]
        );
    }

    #[test]
    fn what_an_iommu_refused_is_a_sentence() {
        let log = "sietch: stray device=00:1e.0 write=0x80000 unsaid=0 why=not mapped\n\
            sietch: stray device=00:1e.0 read=0x1000 unsaid=12 why=it has no domain\n\
            sietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        let wanted = [
            "The IOMMU refused the device 00:1e.0 a write to memory at 0x80000: not mapped.",
            "The IOMMU refused the device 00:1e.0 a read of memory at 0x1000: it has no domain. \
                12 such requests before it were not logged.",
        ];
        assert_eq!(report.devices, wanted);
    }

    #[test]
    fn a_queue_that_stood_still_is_named_with_what_was_done() {
        let log =
            "sietch: stalled ring=1 frames=17 seconds=6 outcome=reset\nsietch: exit status=0\n";
        let report = Report::parse(log, Some(ORDERLY_EXIT));
        assert_eq!(
            report.devices,
            [
                "Transmit queue 1 of the network card sent none of 17 frames for 6 s; it was reset, and they are lost."
            ]
        );
    }
}
