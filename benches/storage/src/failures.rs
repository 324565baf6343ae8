//! Rows that failed: the run goes on without them, and the page says so.

use bench_pair::System;

/// What failed, in the order in which it did.
#[derive(Debug, Default)]
pub struct Failures(Vec<String>);

impl Failures {
    /// A row of a system failed.
    pub fn add(&mut self, system: System, row: &str, why: &str) {
        let line = why.lines().next().unwrap_or("");
        let text = format!("{}, {row}: {line}", system.name());
        eprintln!("  fails: {text}");
        self.0.push(text);
    }

    /// As a list for the page.
    pub fn to_markdown(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let each = self.0.iter().map(|text| format!("- {text}\n"));
        format!(
            "\nFailed, and not in the tables:\n\n{}",
            each.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_said_in_one_line() {
        let mut failures = Failures::default();
        assert_eq!(failures.to_markdown(), "");
        failures.add(System::Sietch, "a row", "EIO\nand more");
        assert!(failures.to_markdown().ends_with("\n- Sietch, a row: EIO\n"));
    }
}
