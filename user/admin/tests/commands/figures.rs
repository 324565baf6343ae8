//! Tools that show the kernel's figures, against files that say what a test wants.

use std::collections::BTreeMap;

use admin::{Files, World};
use linkctl::{Answer, Request};

use super::Recorder;

/// Files and what is in them.
#[derive(Default)]
pub struct Papers(pub BTreeMap<&'static str, String>);

impl Files for Papers {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let text = self.0.get(path).cloned();
        text.ok_or_else(|| format!("{path}: no such file"))
    }
}

struct NoKernel;

impl admin::Kernel for NoKernel {
    fn call(&mut self, _: &Request) -> Result<Answer, String> {
        Err("nobody asks it".into())
    }
}

/// Runs a tool that ends at its second wait: code, output, complaints.
fn run(
    tool: fn(&[String], &mut World<'_>) -> u8,
    line: &str,
    papers: Papers,
) -> (u8, String, String) {
    let words: Vec<String> = line.split(' ').map(String::from).collect();
    let mut waits = 0;
    let mut console = Recorder {
        out: String::new(),
        err: String::new(),
        meanwhile: &mut |_| {
            waits += 1;
            waits < 2
        },
    };
    let mut papers = papers;
    let mut world = World {
        kernel: &mut NoKernel,
        files: &mut papers,
        console: &mut console,
    };
    let code = tool(&words, &mut world);
    (code, console.out, console.err)
}

fn microstates() -> Papers {
    let heads = "PID TID UID AGE USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG NAME";
    let text = format!("{heads}\n1 1 0 100 60 40 0 0 0 0 0 0 1 2 3 4 init\n");
    Papers(BTreeMap::from([
        ("/proc/microstates", text),
        ("/proc/loadavg", "1.00 1.00 1.00 1/1 1\n".into()),
    ]))
}

#[test]
fn prstat_tells_of_a_thread_from_its_start_and_then_of_each_interval() {
    let (code, out, err) = run(admin::prstat::run, "prstat -mLc 1", microstates());
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let whole = "     1 0         60  40 0.0 0.0 0.0 0.0 0.0 0.0   1   2   3   4 init/1";
    let nothing = "     1 0        0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0   0   0   0   0 init/1";
    assert_eq!((lines[1], lines[4], lines.len()), (whole, nothing, 6));
}

#[test]
fn prstat_ends_after_as_many_reports_as_it_was_asked_for() {
    let (code, out, _) = run(admin::prstat::run, "prstat -m 1 1", microstates());
    assert_eq!((code, out.lines().count()), (0, 3));
    for line in ["prstat -m 0", "prstat -m 1 0", "prstat -p one"] {
        assert_eq!(run(admin::prstat::run, line, microstates()).0, 2, "{line}");
    }
}

#[test]
fn a_kernel_without_the_figures_is_named() {
    let (code, out, err) = run(admin::prstat::run, "prstat -mLc 1 1", Papers::default());
    let complaint = "prstat: /proc/microstates: no such file\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, "", complaint));
}
