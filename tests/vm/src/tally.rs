//! Counts what passed and failed, with a line for each as it happens.
//!
//! The seconds of a test are those of the clock, and those of a CPU that its machines and clients
//! used: what lies between them is waiting, or the host's other work.

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

/// The count so far.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u32,
    failed: u32,
}

impl Tally {
    /// Runs one test and counts it.
    pub fn run(&mut self, sentence: &str, test: impl FnOnce() -> Result<(), String>) {
        let (start, used) = (Instant::now(), cpu_seconds());
        let result = test();
        let (seconds, used) = (start.elapsed().as_secs_f32(), cpu_seconds() - used);
        match result {
            Ok(()) => self.pass(&format!("{sentence} ({seconds:.1} s, CPU {used:.1} s)")),
            Err(why) => self.fail(&format!(
                "{sentence} ({seconds:.1} s, CPU {used:.1} s): {why}"
            )),
        }
    }

    /// Counts a test that passed.
    pub fn pass(&mut self, sentence: &str) {
        self.passed += 1;
        println!("ok   {sentence}");
    }

    /// Counts a test that failed.
    pub fn fail(&mut self, sentence: &str) {
        self.failed += 1;
        println!("FAIL {sentence}");
    }

    /// Prints the closing line.
    pub fn finish(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// What this process used of the host's CPUs, and its children that have ended with theirs; proc(5).
fn cpu_seconds() -> f32 {
    const TICKS_PER_SECOND: f32 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, after_name) = stat.rsplit_once(')').unwrap_or_default();
    // Of user and system, own and children's: fields 14 to 17, the first after the name being 3.
    let fields = after_name.split_whitespace().skip(11).take(4);
    fields.flat_map(str::parse::<f32>).sum::<f32>() / TICKS_PER_SECOND
}
