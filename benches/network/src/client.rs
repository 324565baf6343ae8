//! Clients that are programs of Debian's: run for a bounded time, and read.

use std::process::Command;

/// How long a client may take; each ends by itself much sooner.
const PATIENCE_S: &str = "200";

/// Runs a client to its end; what it wrote.
pub fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout")
        .args([PATIENCE_S, program])
        .args(args)
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "{program}, {}: {} {}",
                output.status,
                complaint.trim(),
                last_words(&text)
            ))
        }
    }
}

/// The number behind `label` at the start of a line, or why there is none.
pub fn number(text: &str, label: &str) -> Result<f64, String> {
    let mut lines = text.lines().map(str::trim_start);
    let word = lines.find_map(|line| line.strip_prefix(label)?.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .ok_or_else(|| format!("no number behind {label:?}: {}", last_words(text)))
}

fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_behind_its_label() {
        let said = "Failed requests:  0\n  Requests/sec:  12.5\n";
        assert_eq!(number(said, "Requests/sec:"), Ok(12.5));
        assert!(number(said, "Complete requests:").is_err());
    }
}
