//! Debian's strace and gdb look into programs that run.

use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{Setup, write_file};
use crate::status::{expect_all, expect_status};
use crate::userland::FOLDERS;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "strace shows the calls of a shell and of its children",
        strace,
    ),
    (
        "gdb stops threads at a breakpoint, calls a function and goes on",
        gdb,
    ),
];

const PATIENCE: Duration = Duration::from_secs(120);
const MACHINE: &[&str] = &["--net", "none", "--memory", "512M"];

fn strace(setup: &Setup) -> Result<(), String> {
    let args = [
        MACHINE,
        FOLDERS,
        &["strace", "-f", "/bin/sh", "-c", "/bin/echo one; exit 3"],
    ]
    .concat();
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 3)?;
    let wanted = [
        "execve(\"/bin/echo\", [\"/bin/echo\", \"one\"]",
        "write(1, \"one\\n\", 4",
        "+++ exited with 0 +++",
        "+++ exited with 3 +++",
    ];
    expect_all(&end.console, &wanted)
}

const DEBUGGED: &str = "\
#include <pthread.h>
#include <stdio.h>
__attribute__((noipa)) int twice(int n) { return 2 * n; }
static void *work(void *p) { printf(\"thread %d\\n\", twice(21)); return p; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    printf(\"end %d\\n\", twice(4));
    return 3;
}
";

fn gdb(setup: &Setup) -> Result<(), String> {
    let source = write_file("debugged.c", DEBUGGED)?;
    let program = build::c_linked(source.as_ref(), Link::Dynamic)?;
    let addition = format!("{}:/debugged", program.display());
    let mut args = [MACHINE, FOLDERS, &["--add", &addition, "gdb", "-batch"]].concat();
    let commands = [
        "break twice",
        "run",
        "print n",
        "info threads",
        "delete",
        "print twice(5)",
        "stepi",
        "continue",
    ];
    for command in commands {
        args.extend(["-ex", command]);
    }
    args.push("/debugged");
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let wanted = [
        "hit Breakpoint 1",
        "$1 = 21",
        "Thread 2",
        "$2 = 10",
        "thread 42",
        "end 8",
        "exited with code 03",
    ];
    expect_all(&end.console, &wanted)
}
