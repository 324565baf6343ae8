//! Somebody at the machine's console: types lines to a shell, and reads what they print.
//!
//! The shell is busybox' and the machine's first program, so that servers can be started
//! and stopped while the machine stays, and the kernel's counters read in between.

use std::net::SocketAddr;
use std::time::Duration;

use crate::guest::{BOOT_PATIENCE, End, Guest, Setup};

/// Ends each line's output; the number is the shell's to fill in, so that the echo of
/// what was typed is never taken for it.
const LOOP: &str =
    "n=0; while read -r line; do eval \"$line\"; n=$((n+1)); echo \"#done $n.\"; done";
/// How long one line may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with somebody at its console.
pub struct Operator {
    /// The machine.
    pub guest: Guest,
    answered: usize,
    /// Bytes of the console that earlier lines printed.
    seen: usize,
}

impl Operator {
    /// Starts a machine in which `port` can be served, and says where it is reached.
    pub fn start(setup: &Setup, port: u16, flags: &[&str]) -> Result<(Self, SocketAddr), String> {
        let (guest, address) = setup.serve(port, &with_shell(flags))?;
        Ok((Self::at(guest)?, address))
    }

    /// Starts a machine whose network `flags` describe.
    pub fn start_wired(setup: &Setup, flags: &[&str]) -> Result<Self, String> {
        Self::at(setup.start(&with_shell(flags))?)
    }

    fn at(guest: Guest) -> Result<Self, String> {
        let mut operator = Self {
            guest,
            answered: 0,
            seen: 0,
        };
        operator.ask_within("true", BOOT_PATIENCE)?;
        Ok(operator)
    }

    /// Types a line, and gives back what it printed.
    pub fn ask(&mut self, line: &str) -> Result<String, String> {
        self.ask_within(line, PATIENCE)
    }

    /// As [`ask`](Self::ask), for lines that take longer.
    pub fn ask_within(&mut self, line: &str, patience: Duration) -> Result<String, String> {
        self.guest.type_text(&format!("{line}\n"))?;
        self.answered += 1;
        let end = format!("#done {}.", self.answered);
        self.guest.expect(&end, patience)?;
        let console = self.guest.console();
        let printed = console.get(self.seen..).unwrap_or_default();
        let (printed, _) = printed.split_once(&end).unwrap_or((printed, ""));
        self.seen += printed.len() + end.len();
        Ok(printed.to_string())
    }

    /// Leaves the shell, and with it ends the machine.
    pub fn leave(mut self) -> Result<End, String> {
        self.guest.type_text("exit 0\n")?;
        self.guest.wait(PATIENCE)
    }
}

fn with_shell<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [flags, &["busybox", "sh", "-c", LOOP]].concat()
}
