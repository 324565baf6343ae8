//! What becomes of a profile: a flame graph, folded stacks, or what `perf script` would print.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Options, Palette};

use super::collector::Named;
use super::wakeup;
use crate::failure::Failure;

/// How a profile is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A picture: Brendan Gregg's flame graph, as SVG.
    #[default]
    FlameGraph,
    /// A line for each stack: its functions split by semicolons, a space, how often.
    Folded,
    /// A paragraph for each sample, as perf-script(1) prints it.
    PerfScript,
    /// A paragraph for each wait that was not shorter: who ended it, and how.
    Wakeups {
        /// The least time that a wait must have taken.
        least: Duration,
    },
}

impl Format {
    /// The format that a file's name asks for.
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("folded" | "txt") => Self::Folded,
            Some("perf") => Self::PerfScript,
            _ => Self::FlameGraph,
        }
    }

    /// How names of such files end.
    pub fn extension(self) -> &'static str {
        match self {
            Self::FlameGraph => "svg",
            Self::Folded => "folded",
            Self::PerfScript => "perf",
            Self::Wakeups { .. } => "wakeups",
        }
    }
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The machine's name.
    pub name: String,
    /// Times of waiting, not samples.
    pub is_waits: bool,
    /// Ticks a second of the records' clock.
    pub hertz: u64,
}

/// The file that a profile goes to.
pub struct Output {
    format: Format,
    path: PathBuf,
    to: Box<dyn Write>,
    subject: Subject,
    /// Stacks and their weights; not for formats that are written at once.
    stacks: BTreeMap<String, u64>,
}

impl Output {
    /// Creates the file; `-` is standard output.
    pub fn create(path: &Path, format: Format, subject: Subject) -> Result<Self, Failure> {
        let to: Box<dyn Write> = if path == Path::new("-") {
            Box::new(io::stdout())
        } else {
            let file = File::create(path).map_err(Failure::file(path))?;
            Box::new(BufWriter::new(file))
        };
        Ok(Self {
            format,
            path: path.into(),
            to,
            subject,
            stacks: BTreeMap::new(),
        })
    }

    /// Takes a record.
    pub fn add(&mut self, named: &Named) -> Result<(), Failure> {
        let written = match self.format {
            Format::PerfScript => write_script(&mut self.to, named, &self.subject),
            Format::Wakeups { least } => wakeup::write(&mut self.to, named, least),
            Format::FlameGraph | Format::Folded => {
                self.count(named);
                Ok(())
            }
        };
        written.map_err(Failure::file(&self.path))
    }

    fn count(&mut self, named: &Named) {
        // A semicolon splits frames, and a line feed stacks.
        let lines = named.lines();
        let names = lines.iter().map(|(_, name, _)| *name);
        let names = std::iter::once(named.thread.as_str()).chain(names);
        let names = names.map(|name| name.replace([';', '\n'], ":"));
        let stack = names.collect::<Vec<_>>().join(";");
        *self.stacks.entry(stack).or_default() += named.weight;
    }

    /// Writes what is not written yet.
    pub fn finish(mut self) -> Result<(), Failure> {
        let written = match self.format {
            Format::FlameGraph => self.draw(),
            Format::Folded => self.write_folded(),
            Format::PerfScript | Format::Wakeups { .. } => Ok(()),
        };
        let written = written.and_then(|()| self.to.flush());
        written.map_err(Failure::file(&self.path))
    }

    fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let counted = self.stacks.iter().filter(|(_, weight)| **weight > 0);
        counted.map(|(stack, weight)| format!("{stack} {weight}"))
    }

    fn write_folded(&mut self) -> io::Result<()> {
        let lines: Vec<String> = self.lines().collect();
        lines
            .iter()
            .try_for_each(|line| writeln!(self.to, "{line}"))
    }

    fn draw(&mut self) -> io::Result<()> {
        let mut lines: Vec<String> = self.lines().collect();
        if lines.is_empty() {
            lines.push("[nothing] 1".into());
        }
        let mut options = Options::default();
        options.title = if self.subject.is_waits {
            format!("{}: waits", self.subject.name)
        } else {
            format!("{}: CPUs", self.subject.name)
        };
        (options.count_name, options.colors) = if self.subject.is_waits {
            ("us".into(), Palette::Basic(BasicPalette::Blue))
        } else {
            // Knows `_[k]`, the mark of the kernel's functions.
            ("samples".into(), Palette::Multi(MultiPalette::Java))
        };
        let lines = lines.iter().map(String::as_str);
        flamegraph::from_lines(&mut options, lines, &mut self.to).map_err(io::Error::other)
    }
}

fn write_script(to: &mut dyn Write, named: &Named, subject: &Subject) -> io::Result<()> {
    let seconds = named.cycles as f64 / subject.hertz.max(1) as f64;
    let (pid, tid) = named.ids;
    let event = if subject.is_waits {
        format!("{} off-cpu-us:", named.weight)
    } else {
        "cpu-clock:".into()
    };
    let (thread, cpu) = (&named.thread, named.cpu);
    writeln!(to, "{thread} {pid}/{tid} [{cpu:03}] {seconds:.6}: {event}")?;
    for (address, name, file) in named.lines().iter().rev() {
        writeln!(to, "\t{address:16x} {name} ({file})")?;
    }
    writeln!(to)
}
