//! /proc/microstates: where the time of every thread goes, for `prstat`.
//!
//! One reading gives all threads of all processes, a line for each behind a line of heads.
//! Each line is exact in itself: the eight states add up to the age. Lines are not of the
//! same moment. There are no more of them than there are thread numbers (`task::ID_MAX`).
//!
//! The file is not Linux's; the heads name the columns, so that others may be added.

use core::fmt::{Result, Write};

use task::{Thread, family};
use vfs::pseudo::Text;

/// Times are nanoseconds; the name comes last, without control characters.
const HEADS: &str = "PID TID UID AGE USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG NAME";

/// Writes the file.
pub fn generate(text: &mut Text) -> Result {
    writeln!(text, "{HEADS}")?;
    for process in family::processes() {
        let mut threads = process.threads();
        threads.sort_unstable_by_key(|thread| thread.id());
        for thread in threads {
            line(&thread, text)?;
        }
    }
    Ok(())
}

fn line(thread: &Thread, text: &mut Text) -> Result {
    let reading = thread.sched.life.read(mach::time::now());
    let (voluntary, forced) = thread.sched.switches();
    let uid = thread.credentials.get().user.effective;
    write!(
        text,
        "{} {} {uid} {}",
        thread.process.id(),
        thread.id(),
        reading.age_ns
    )?;
    for spent_ns in reading.spent_ns {
        write!(text, " {spent_ns}")?;
    }
    let (calls, signals) = (thread.calls(), thread.signals_taken());
    write!(text, " {voluntary} {forced} {calls} {signals} ")?;
    let name = *thread.name.lock();
    let bytes = name.iter().take_while(|byte| **byte != 0);
    for byte in bytes {
        text.push(match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '?',
        });
    }
    text.write_char('\n')
}
