//! Debian's perf samples and counts what programs do.

use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{Setup, write_file};
use crate::status::{expect_all, expect_status};
use crate::userland::FOLDERS;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "perf record finds the function that works, of a program and of all CPUs",
        record,
    ),
    ("perf record -g names the callers", callers),
    (
        "perf record -p ends with the process that it watches",
        running,
    ),
    (
        "perf record works for a user without rights",
        without_rights,
    ),
    ("perf stat counts a program and the machine", stat),
];

const PATIENCE: Duration = Duration::from_secs(120);
const MACHINE: &[&str] = &["--net", "none", "--memory", "512M"];

/// The leaf keeps no frame, so that its caller is in no chain; all others are.
const PROGRAM: &str = "\
#include <stdlib.h>
#include <time.h>
#define FRAMED __attribute__((noipa, optimize(\"no-omit-frame-pointer\")))
static volatile unsigned long sink;
FRAMED void the_hot_function(void) { for (int i = 0; i < 100000; i++) sink += i; }
FRAMED void its_caller(void) { the_hot_function(); sink++; }
FRAMED void the_outer_function(int turns) { while (turns--) its_caller(); sink++; }
int main(int count, char **arguments) {
    int seconds = count > 1 ? atoi(arguments[1]) : 1;
    while (clock() < seconds * CLOCKS_PER_SEC) the_outer_function(100);
    return 3;
}
";

/// Runs the script in a shell, with the program at `/hot`; gives what they said.
fn run(setup: &Setup, script: &str) -> Result<String, String> {
    let source = write_file("hot.c", PROGRAM)?;
    let program = build::c_linked(source.as_ref(), Link::Dynamic)?;
    let addition = format!("{}:/hot", program.display());
    let script = format!("mkdir -p -m 1777 /tmp; cd /tmp; {script}; exit 3");
    let args = [MACHINE, FOLDERS, &["--add", &addition, "sh", "-c", &script]].concat();
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 3)?;
    Ok(end.console)
}

fn record(setup: &Setup) -> Result<(), String> {
    for whom in ["", "-a"] {
        let script = format!(
            "perf record {whom} -o /tmp/perf.data -- /hot; perf report --stdio -i perf.data"
        );
        let said = run(setup, &script)?;
        expect_all(&said, &["Total Lost Samples: 0", "[.] the_hot_function"])?;
    }
    Ok(())
}

fn callers(setup: &Setup) -> Result<(), String> {
    let script = "perf record -g -o /tmp/perf.data -- /hot; perf script -i perf.data | head -500";
    let said = run(setup, script)?;
    expect_all(
        &said,
        &["the_hot_function+0x", "the_outer_function+0x", "(/hot)"],
    )
}

fn running(setup: &Setup) -> Result<(), String> {
    let said = run(
        setup,
        "/hot 5 & perf record -p $! -o perf.data; perf report --stdio -i perf.data",
    )?;
    expect_all(&said, &["[.] the_hot_function"])
}

fn without_rights(setup: &Setup) -> Result<(), String> {
    let perf = "perf record -o user.data -- /hot; perf report --stdio -i user.data";
    let said = run(
        setup,
        &format!("setpriv --reuid 1000 --clear-groups sh -c '{perf}'"),
    )?;
    expect_all(&said, &["[.] the_hot_function"])
}

fn stat(setup: &Setup) -> Result<(), String> {
    let said = run(setup, "perf stat /hot; perf stat -a -- sleep 1")?;
    expect_all(
        &said,
        &[
            "task-clock",
            "context-switches",
            "page-faults",
            "for 'system wide'",
            "cpu-clock",
        ],
    )
}
