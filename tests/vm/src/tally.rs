//! Counts what passed and failed, with a line for each as it happens.

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
        let start = Instant::now();
        let result = test();
        let seconds = start.elapsed().as_secs_f32();
        match result {
            Ok(()) => self.pass(&format!("{sentence} ({seconds:.1} s)")),
            Err(why) => self.fail(&format!("{sentence} ({seconds:.1} s): {why}")),
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
