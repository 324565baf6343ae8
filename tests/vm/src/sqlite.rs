//! SQLite's shell with both kinds of journal.

use std::time::Duration;

use crate::Test;
use crate::guest::{Setup, write_file};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "SQLite with a rollback journal keeps what was committed",
        rollback,
    ),
    (
        "SQLite with a write-ahead log keeps what was committed",
        write_ahead,
    ),
];

const PATIENCE: Duration = Duration::from_secs(120);

fn rollback(setup: &Setup) -> Result<(), String> {
    transactions(setup, "delete")
}

fn write_ahead(setup: &Setup) -> Result<(), String> {
    transactions(setup, "wal")
}

fn transactions(setup: &Setup, journal: &str) -> Result<(), String> {
    let mut script =
        format!("pragma journal_mode={journal};\ncreate table t(a integer primary key, b text);\n");
    for round in 0..20 {
        script += "begin;\n";
        for row in 0..100 {
            script += &format!("insert into t(b) values('row {row} of round {round}');\n");
        }
        script += if round % 4 == 3 {
            "rollback;\n"
        } else {
            "commit;\n"
        };
    }
    script +=
        "update t set b = b || '!' where a % 7 = 0;\ndelete from t where a % 10 = 0;\nvacuum;\n";
    script += "pragma integrity_check;\nselect 'rows ' || count(*) from t;\n";
    let file = write_file(&format!("{journal}.sql"), script)?;
    let addition = format!("{file}:/script.sql");
    let args = [
        "--net",
        "none",
        "--add",
        &addition,
        "sqlite3",
        "/tmp/test.db",
        ".read /script.sql",
    ];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    let lines: Vec<&str> = end.console.lines().map(str::trim_end).collect();
    // 15 committed rounds of 100 rows, less every tenth.
    match lines.as_slice() {
        [mode, "ok", "rows 1350"] if *mode == journal => Ok(()),
        other => Err(format!("the shell says {other:?}")),
    }
}
