//! What the stages of a durable SET cost, as Table 2 of "Arrakis: The Operating System is the Control Plane" (OSDI 2014)
//! splits it: receive, parse, log write, persistence, send.
//!
//! `plugin/stages.c` tells them apart by the server's system calls; the library's own instructions are the log write wherever
//! it makes no call for that. Times need a machine in which nothing is counted, so there are two.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;

use bench_pair::OUTPUT;

const SOURCE: &str = "benches/storage/plugin/stages.c";
/// Where the plugin puts what the kernel executes.
const KERNEL: u64 = 0;

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Wait,
    Receive,
    Parse,
    Log,
    Persist,
    Send,
}

impl Stage {
    /// In the order of the table.
    pub const ALL: [Self; 6] = [
        Self::Wait,
        Self::Receive,
        Self::Parse,
        Self::Log,
        Self::Persist,
        Self::Send,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait, and be woken by a packet",
            Self::Receive => "receive",
            Self::Parse => "parse and execute",
            Self::Log => "log write",
            Self::Persist => "persistence",
            Self::Send => "send",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "wait" => Self::Wait,
            "receive" => Self::Receive,
            "parse" => Self::Parse,
            "log" => Self::Log,
            "persist" => Self::Persist,
            "send" => Self::Send,
            _ => return None,
        })
    }
}

/// Sums since the machine's start, or between two moments.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    nanos: HashMap<Stage, f64>,
    instructions: HashMap<(Stage, u64), f64>,
}

/// What one of many requests has of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    pub micros: f64,
    pub kernel: f64,
    /// Of the program, and the C library's for it.
    pub program: f64,
    /// Of the library that puts files on a log.
    pub library: f64,
}

impl Share {
    /// What is left of it without another one.
    pub fn without(&self, other: &Self) -> Self {
        Self {
            micros: self.micros - other.micros,
            kernel: self.kernel - other.kernel,
            program: self.program - other.program,
            library: self.library - other.library,
        }
    }
}

impl Totals {
    /// Asks the plugin.
    pub fn read() -> Result<Self, String> {
        let mut text = String::new();
        UnixStream::connect(socket())
            .and_then(|mut stream| stream.read_to_string(&mut text))
            .map_err(|error| format!("{}: {error}", socket()))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut totals = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [kind, stage, first, second] = words[..] else {
                continue;
            };
            let (Some(stage), Ok(first), Ok(second)) =
                (Stage::of_word(stage), first.parse(), second.parse::<u64>())
            else {
                continue;
            };
            match kind {
                "time" => totals.nanos.insert(stage, first as f64),
                _ => (totals.instructions).insert((stage, first), second as f64),
            };
        }
        totals
    }

    /// What one of `more` requests has of a stage, where `self` has so many more than `before`.
    pub fn share(
        &self,
        before: &Self,
        stage: Stage,
        more: u32,
        library: &[std::ops::Range<u64>],
    ) -> Share {
        let more = f64::from(more);
        let nanos = |totals: &Self| totals.nanos.get(&stage).copied().unwrap_or(0.0);
        let mut share = Share {
            micros: (nanos(self) - nanos(before)) / more / 1000.0,
            ..Share::default()
        };
        for ((of, address), count) in &self.instructions {
            if *of != stage {
                continue;
            }
            let before = before.instructions.get(&(stage, *address));
            let each = (count - before.unwrap_or(&0.0)) / more;
            match *address {
                KERNEL => share.kernel += each,
                _ if library.iter().any(|range| range.contains(address)) => share.library += each,
                _ => share.program += each,
            }
        }
        share
    }
}

/// For QEMU's `-plugin`.
pub fn plugin(is_counting: bool) -> Result<String, String> {
    let plugin = format!("{OUTPUT}/stages.so");
    std::fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-o", &plugin, SOURCE])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!(
            "{SOURCE} cannot be compiled: `make setup` installs the compiler."
        ));
    }
    let counts = if is_counting { ",counts=on" } else { "" };
    Ok(format!("{plugin},totals={}{counts}", socket()))
}

fn socket() -> String {
    format!("{OUTPUT}/stages.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_part_of_what_came_between() {
        let before = Totals::parse("time send 1000 1\ncount send 0 50\n");
        let after =
            Totals::parse("time send 5000 3\ncount send 0 250\ncount send 65536 8\nnonsense\n");
        let whole = after.share(&before, Stage::Send, 2, &[]);
        assert_eq!(
            (whole.micros, whole.kernel, whole.program),
            (2.0, 100.0, 4.0)
        );
        let library = [1..2, 65536..131072];
        let split = after.share(&before, Stage::Send, 2, &library);
        assert_eq!((split.program, split.library), (0.0, 4.0));
        assert_eq!(after.share(&before, Stage::Log, 2, &[]), Share::default());
    }
}
