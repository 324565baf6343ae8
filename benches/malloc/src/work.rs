//! The workloads, and how one of them is run.

use std::fs;
use std::process::Command;

use crate::allocator::Allocator;

const SOURCE: &str = "benches/malloc/programs/work.c";
const PROGRAM: &str = "build/bench-malloc-work";
const COUNTS: &str = "build/bench-malloc-callgrind.out";

/// One workload of `work.c`.
pub struct Work {
    /// Its name there.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// Whether its instructions are counted.
    pub is_counted: bool,
}

/// All of them.
pub const WORKS: [Work; 6] = [
    Work {
        name: "pair",
        does: "malloc and free of 64 bytes, back to back",
        is_counted: true,
    },
    Work {
        name: "batch",
        does: "1000 mallocs of 64 bytes, then 1000 frees",
        is_counted: true,
    },
    Work {
        name: "mixed",
        does: "8 to 512 bytes, replaced at random in 4096 slots",
        is_counted: true,
    },
    Work {
        name: "handover",
        does: "one thread allocates, another frees",
        is_counted: false,
    },
    Work {
        name: "larson",
        does: "two threads replace 16 to 1024 bytes at random among 20,000 slots each, and hand them to new threads",
        is_counted: false,
    },
    Work {
        name: "shrink",
        does: "500,000 objects of 16 to 512 bytes, nine tenths freed at random, then two seconds of small work",
        is_counted: false,
    },
];

/// What a run said.
#[derive(Clone, Copy)]
pub struct Figures {
    /// CPU time per malloc and its free.
    pub nanoseconds: f64,
    /// Resident memory at the end.
    pub resident_kib: f64,
}

/// Compiles the program.
pub fn compile() -> Result<(), String> {
    fs::create_dir_all("build").map_err(|error| format!("build: {error}"))?;
    let status = Command::new("cc")
        .args(["-O2", "-pthread", "-o", PROGRAM, SOURCE])
        .status();
    match status.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err(format!("{SOURCE} does not compile")),
    }
}

/// Runs a workload with an allocator.
pub fn run(work: &Work, allocator: &Allocator) -> Result<Figures, String> {
    let mut command = Command::new(PROGRAM);
    let said = output(command.arg(work.name), allocator)?;
    let mut words = said.split_whitespace().skip(1).map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(nanoseconds)), Some(Ok(resident_kib))) => Ok(Figures {
            nanoseconds,
            resident_kib,
        }),
        _ => Err(format!(
            "{} under {} says {said:?}",
            work.name, allocator.name
        )),
    }
}

/// Instructions per malloc and its free: the difference of two runs, without the start.
pub fn instructions(work: &Work, allocator: &Allocator) -> Result<f64, String> {
    const FEW: u64 = 100_000;
    const MANY: u64 = 600_000;
    let counted = |count: u64| -> Result<u64, String> {
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "-q"])
            .arg(format!("--callgrind-out-file={COUNTS}"))
            .args([PROGRAM, work.name, &count.to_string()]);
        output(&mut command, allocator)?;
        let text = fs::read_to_string(COUNTS).map_err(|error| format!("{COUNTS}: {error}"))?;
        let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
        total
            .and_then(|total| total.trim().parse().ok())
            .ok_or_else(|| format!("{COUNTS} has no summary"))
    };
    Ok((counted(MANY)? - counted(FEW)?) as f64 / (MANY - FEW) as f64)
}

fn output(command: &mut Command, allocator: &Allocator) -> Result<String, String> {
    let output = command.env("LD_PRELOAD", &allocator.library).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{command:?} under {}: {}: {said}",
            allocator.name, output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
