//! A machine that is started again when it has ended (`--restart`).
//!
//! The process in the background that keeps the machine becomes a fresh one of the same number (exec), so
//! that there is one way to start a machine, and nothing of the former one is left in it. Between two starts it waits as
//! docker does: 100 ms, then twice as long each time, at most a minute; who ran for ten seconds begins anew. Who stops
//! the machine meanwhile ends the wait. A start that fails is an end like others, at once.
//!
//! Whether there is a next turn is known before the end is noted, and noted with it: a machine that waits for it holds
//! its name, and nobody takes it for one that has ended.

use std::env;
use std::iter;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::flags::{RestartPolicy, RunFlags};
use crate::state::Folder;

/// Set for a process that starts its machine again: how often before, and how long it waited.
const TURN: &str = "SIETCH_RESTARTED";
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
/// Who ran for so long did not fail at its start.
const LONG_ENOUGH: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Which start of the machine this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// So many were before.
    pub restarts: u32,
    waited: Duration,
}

impl Turn {
    /// That of this process.
    pub fn of_this_process() -> Self {
        let text = env::var(TURN).unwrap_or_default();
        let numbers = text.split_once(':').and_then(|(restarts, waited_ms)| {
            Some((restarts.parse().ok()?, waited_ms.parse().ok()?))
        });
        numbers.map_or_else(Self::default, |(restarts, waited_ms)| Self {
            restarts,
            waited: Duration::from_millis(waited_ms),
        })
    }

    fn after(self, ran: Duration) -> Self {
        let waited = match self.waited {
            _ if ran >= LONG_ENOUGH => FIRST,
            Duration::ZERO => FIRST,
            waited => (waited * 2).min(LONGEST),
        };
        Self {
            restarts: self.restarts.saturating_add(1),
            waited,
        }
    }

    /// The next one, if `policy`, or what `sietch update` has put into its place, wants it after that end, and nobody has stopped
    /// the machine.
    pub fn next(
        self,
        policy: RestartPolicy,
        folder: &Folder,
        status: u8,
        ran: Duration,
    ) -> Option<Self> {
        let policy = policy_of(folder).unwrap_or(policy);
        let is_next = policy.wants(status, self.restarts) && !folder.is_wished_to_stop();
        is_next.then(|| self.after(ran))
    }

    /// Waits, and starts the machine of this process again, whose end is noted with that; comes back if somebody stops
    /// it meanwhile.
    ///
    /// Errors: this program cannot be executed any more.
    pub fn begin(self, folder: &Folder) -> Result<(), Failure> {
        if is_stopped_within(self.waited, folder)? {
            return folder.note_no_restart();
        }
        let this = env::current_exe().map_err(Failure::file("sietch"))?;
        // Its line, which others may have changed ([`crate::line`]).
        let arguments = folder.own_settings().map(|settings| settings.arguments);
        let error = Command::new(this)
            .args(arguments.unwrap_or_else(|| env::args().skip(1).collect()))
            .env(
                TURN,
                format!("{}:{}", self.restarts, self.waited.as_millis()),
            )
            .exec();
        folder.note_no_restart()?;
        Err(Failure::Lost(error))
    }
}

/// The policy of the line with which the machine of this process is started again.
fn policy_of(folder: &Folder) -> Option<RestartPolicy> {
    let line = folder.own_settings()?.arguments;
    let words = iter::once("sietch".to_string()).chain(line);
    let flags = RunFlags::of_line(words).ok()?;
    Some(flags.life.restart)
}

/// Waits; whether somebody stops the machine meanwhile.
fn is_stopped_within(time: Duration, folder: &Folder) -> Result<bool, Failure> {
    let is_signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, is_signalled.clone()).map_err(Failure::Lost)?;
    }
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if is_signalled.load(Ordering::Relaxed) || folder.is_wished_to_stop() {
            return Ok(true);
        }
        thread::sleep(POLL.min(time));
    }
    Ok(is_signalled.load(Ordering::Relaxed) || folder.is_wished_to_stop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_minute_and_begins_anew_after_a_long_run() {
        let short = Duration::from_secs(1);
        let mut turn = Turn::default().after(short);
        assert_eq!((turn.restarts, turn.waited), (1, FIRST));
        turn = turn.after(short);
        assert_eq!((turn.restarts, turn.waited), (2, FIRST * 2));
        for _ in 0..40 {
            turn = turn.after(short);
        }
        assert_eq!(turn.waited, LONGEST);
        assert_eq!(turn.after(LONG_ENOUGH).waited, FIRST);
    }
}
