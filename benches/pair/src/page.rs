//! The pages that benchmarks write, and the conditions that stand on them.

use std::fs;
use std::process::Command;

use crate::Kernel;

/// What the ratios are against, and what Sietch does itself.
pub const MITIGATIONS: &str = "Linux runs as it comes and with\n\
    `mitigations=off`; the ratio is against the latter, the better one for Linux, where it was\n\
    measured, and bold where Sietch wins. What Sietch itself does against such attacks:\n\
    [mitigations.md](mitigations.md).";

/// Writes a page of the documentation.
pub fn write(path: &str, text: &str) -> Result<(), String> {
    fs::create_dir_all("docs")
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{path}: {error}"))
}

/// Today, as `2026-01-31`.
pub fn date() -> String {
    first_line("date", &["-u", "+%Y-%m-%d"])
}

/// QEMU's version.
pub fn qemu() -> String {
    first_line("qemu-system-x86_64", &["--version"])
}

/// The version of a guest's Linux.
pub fn linux(kernel: Kernel) -> String {
    let said = first_line("file", &["-b", &kernel.file().to_string_lossy()]);
    let version = said.split_once("version ").map(|(_, rest)| rest);
    let version = version.and_then(|rest| rest.split_once(' '));
    version.map_or(said.clone(), |(version, _)| version.to_string())
}

/// The first line that a program writes: most tell their version so.
pub fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("?").to_string()
}
