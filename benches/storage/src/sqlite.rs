//! SQLite's shell, which commits one row after the other.

use std::time::Instant;

use crate::shell::Shell;

/// Its shell.
pub const PROGRAM: &str = "/usr/bin/sqlite3";
/// Transactions before others are timed: the emulator has seen the code by then.
const WARM: u32 = 200;

/// How it keeps transactions whole; in both it waits for the disk at each commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What changes goes to a log: one fdatasync(2) for a transaction.
    Wal,
    /// What was there before goes to a file, which is removed afterwards: several.
    Delete,
}

impl Mode {
    /// In the order of the page.
    pub const ALL: [Self; 2] = [Self::Wal, Self::Delete];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wal => "SQLite, `journal_mode=WAL`",
            Self::Delete => "SQLite, `journal_mode=DELETE`",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Wal => "WAL",
            Self::Delete => "DELETE",
        }
    }

    /// Makes the table, and what is typed for so many transactions.
    pub fn prepare(self, shell: &mut Shell, counts: &[u32]) -> Result<(), String> {
        let word = self.word();
        shell.run(&format!(
            "busybox rm -f /mnt/db*; {PROGRAM} /mnt/db 'PRAGMA journal_mode={word}; CREATE TABLE t(v);'"
        ))?;
        for count in counts {
            let insert = "INSERT INTO t VALUES(hex(randomblob(50)));";
            shell.run(&format!(
                "echo 'PRAGMA synchronous=FULL;' >/tmp/sql-{count}; busybox yes '{insert}' | busybox head -n {count} >>/tmp/sql-{count}"
            ))?;
        }
        Ok(())
    }

    /// Commits so many transactions.
    pub fn run(self, shell: &mut Shell, count: u32) -> Result<String, String> {
        shell.run(&format!("{PROGRAM} -bail /mnt/db </tmp/sql-{count}"))
    }

    /// Starts the shell, which then has committed `WARM` transactions, and waits for so many more.
    pub fn start(self, shell: &mut Shell, count: u32) -> Result<(), String> {
        self.prepare(shell, &[WARM, count])?;
        shell.run("busybox rm -f /tmp/in /tmp/out; busybox mkfifo /tmp/in /tmp/out")?;
        shell.run(&format!(
            "( {PROGRAM} -bail /mnt/db <>/tmp/in >/tmp/said 2>&1; echo ended >/tmp/out ) &"
        ))?;
        commit(shell, WARM)
    }
}

/// Transactions a second of the shell that was started.
pub fn rate(shell: &mut Shell, count: u32) -> Result<f64, String> {
    let start = Instant::now();
    commit(shell, count)?;
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Ends the shell that was started.
pub fn stop(shell: &mut Shell) -> Result<(), String> {
    ask(shell, ".quit", "ended")
}

/// Has the shell that was started commit so many transactions.
fn commit(shell: &mut Shell, count: u32) -> Result<(), String> {
    let lines = format!(".read /tmp/sql-{count}\\n.shell echo committed >/tmp/out");
    ask(shell, &lines, "committed")
}

fn ask(shell: &mut Shell, lines: &str, answer: &str) -> Result<(), String> {
    let command = format!(
        "printf '{lines}\\n' >/tmp/in; read said <>/tmp/out; test $said = {answer} || {{ busybox cat /tmp/said; exit 1; }}"
    );
    shell.run(&command).map(drop)
}
