//! How much of a kernel stack each function takes, read from the kernel's disassembly: `tidy --frames KERNEL`.
//!
//! A kernel stack has 16 KiB, for all that call each other. A value of some KiB that is made, changed and moved may be on it
//! three times, and nobody sees that in the source; the compiler's own account of it (`-Z emit-stack-sizes`) is not in stable
//! Rust. So each function's prologue is read: what it subtracts from the stack pointer, page by page or in a loop where it is
//! probed. What it pushes is less than 64 bytes and left out.
//!
//! Way out of a finding: put large parts of the value on the heap one by one, each in a function of its own that is left before
//! others are called.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::finding::Finding;

/// Bytes that a function may take.
const FRAME_BYTES_MAX: u64 = 4096;

/// Functions that may take more, and how much.
const LARGER: [(&str, u64); 4] = [
    // The sort's own room for elements, a page, at the bottom of a stack.
    ("core::slice::sort::stable::driftsort_main", 4160),
    // What the boot loader left, and the card's tables: while the machine starts.
    ("mach::sync::once::Once<T>::fill", 15_360),
    ("core::ops::function::FnOnce::call_once", 5120),
    // An inet stack and its environment, moved once into a box.
    ("net::stack::shard::Shard::boxed", 4864),
];

/// A prologue has fewer instructions.
const PROLOGUE_MAX: usize = 64;

/// Findings in the kernel at `kernel`.
///
/// Errors: `objdump` (Debian's binutils) does not run.
pub fn check(kernel: &Path) -> Result<Vec<Finding>, String> {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "-C", "--no-show-raw-insn"]).arg(kernel);
    let mut objdump = objdump
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| format!("objdump: {why}"))?;
    let text = objdump.stdout.take().ok_or("objdump says nothing")?;
    let mut frames = Frames::default();
    for line in BufReader::new(text).lines() {
        frames.read(&line.map_err(|why| format!("objdump: {why}"))?);
    }
    let status = objdump.wait().map_err(|why| format!("objdump: {why}"))?;
    match status.success() && !frames.bytes.is_empty() {
        true => Ok(frames.findings(kernel)),
        false => Err(format!("objdump finds no function in {}", kernel.display())),
    }
}

/// Frames by functions, the largest of those that have one name.
#[derive(Default)]
struct Frames {
    bytes: BTreeMap<String, u64>,
    /// Whose prologue is read, and how many instructions of it were.
    name: String,
    instructions: usize,
    /// Its frame so far.
    frame: u64,
    /// A loop of probes that is about to begin.
    probed: Option<u64>,
}

impl Frames {
    fn read(&mut self, line: &str) {
        if let Some(name) = name_of(line) {
            self.name = name.to_owned();
            (self.instructions, self.frame, self.probed) = (0, 0, None);
            return;
        }
        self.instructions += 1;
        if self.instructions > PROLOGUE_MAX {
            return;
        }
        if let Some(bytes) = between(line, "-0x", "(%rsp),%r11") {
            self.probed = Some(bytes);
        } else if let Some(bytes) = between(line, "$0x", ",%rsp").filter(|_| line.contains("sub "))
        {
            self.frame += self.probed.take().unwrap_or(bytes);
            let largest = self.bytes.entry(self.name.clone()).or_default();
            *largest = self.frame.max(*largest);
        }
    }

    fn findings(&self, kernel: &Path) -> Vec<Finding> {
        let is_too_large = |(name, bytes): &(&String, &u64)| **bytes > bytes_max(name);
        let report = |(name, bytes)| {
            let sentence = format!(
                "{name} takes {bytes} bytes of a kernel stack: put large parts of its value on the heap"
            );
            Finding::at(kernel, 0, sentence)
        };
        self.bytes.iter().filter(is_too_large).map(report).collect()
    }
}

fn bytes_max(name: &str) -> u64 {
    let larger = LARGER.iter().find(|(other, _)| *other == name);
    larger.map_or(FRAME_BYTES_MAX, |(_, bytes)| *bytes)
}

/// The function that begins at a line `address <name::hash>:`.
fn name_of(line: &str) -> Option<&str> {
    let (_, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some(match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 => name,
        _ => name,
    })
}

/// The hexadecimal number between two parts of a line.
fn between(line: &str, before: &str, behind: &str) -> Option<u64> {
    let (rest, _) = line.split_once(behind)?;
    let (_, digits) = rest.rsplit_once(before)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(instructions: &str) -> Vec<String> {
        let mut frames = Frames::default();
        frames.read("ffffffff80200000 <net::shard::boxed::h8bc467307f7f3bf8>:");
        instructions.lines().for_each(|line| frames.read(line));
        let findings = frames.findings(Path::new("kernel"));
        findings.into_iter().map(|found| found.sentence).collect()
    }

    #[test]
    fn a_frame_is_what_all_its_pages_are_together() {
        let pages = "a:\tsub    $0x1000,%rsp\nb:\tmovq   $0x0,(%rsp)\nc:\tsub    $0x608,%rsp";
        let found = findings(pages);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("net::shard::boxed takes 5640 bytes"),
            "{found:?}"
        );
    }

    #[test]
    fn pages_that_a_loop_probes_are_counted() {
        let looped =
            "a:\tlea    -0x3000(%rsp),%r11\nb:\tsub    $0x1000,%rsp\nc:\tsub    $0x10,%rsp";
        assert!(findings(looped)[0].contains("takes 12304 bytes"));
    }

    #[test]
    fn a_page_is_not_too_much() {
        assert_eq!(findings("a:\tsub    $0x1000,%rsp"), [""; 0]);
    }
}
