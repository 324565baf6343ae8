//! The page that is written.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::allocator::Allocator;
use crate::work::{Figures, WORKS, Work};

/// Figures of every workload and allocator.
pub struct Page {
    names: Vec<&'static str>,
    rounds: usize,
    figures: BTreeMap<(&'static str, usize), Vec<Figures>>,
    counts: BTreeMap<(&'static str, usize), f64>,
}

impl Page {
    /// An empty page.
    pub fn new(allocators: &[Allocator], rounds: usize) -> Self {
        Self {
            names: allocators.iter().map(|allocator| allocator.name).collect(),
            rounds,
            figures: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Adds what one run said.
    pub fn add(&mut self, work: &Work, allocator: usize, figures: Figures) {
        let all = self.figures.entry((work.name, allocator)).or_default();
        all.push(figures);
    }

    /// Notes instructions per malloc and its free.
    pub fn count(&mut self, work: &Work, allocator: usize, instructions: f64) {
        self.counts.insert((work.name, allocator), instructions);
    }

    /// The page's text.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# malloc, side by side\n\nWritten by `make bench-malloc` (`cargo run --release -p bench-malloc -- {}`): one program,\neach allocator by `LD_PRELOAD`, {} alternating rounds, without huge pages. Median, and least to most.\n\n",
            self.rounds, self.rounds
        );
        for work in &WORKS {
            let _ = writeln!(text, "- **{}**: {}", work.name, work.does);
        }
        self.table(
            &mut text,
            "CPU time per malloc and its free, nanoseconds",
            &|figures| figures.nanoseconds,
        );
        self.table(&mut text, "Resident at the end, MiB", &|figures| {
            figures.resident_kib / 1024.0
        });
        let _ = writeln!(
            text,
            "\n## Instructions per malloc and its free\n\nCounted by callgrind, with the benchmark's own loop.\n"
        );
        self.header(&mut text);
        for work in WORKS.iter().filter(|work| work.is_counted) {
            let _ = write!(text, "| {} |", work.name);
            for allocator in 0..self.names.len() {
                let count = self.counts.get(&(work.name, allocator));
                let _ = write!(text, " {:.1} |", count.copied().unwrap_or(f64::NAN));
            }
            text.push('\n');
        }
        text
    }

    fn header(&self, text: &mut String) {
        let _ = writeln!(text, "| | {} |", self.names.join(" | "));
        let _ = writeln!(text, "|---{}|", "|---".repeat(self.names.len()));
    }

    fn table(&self, text: &mut String, title: &str, figure: &dyn Fn(&Figures) -> f64) {
        let _ = writeln!(text, "\n## {title}\n");
        self.header(text);
        for work in &WORKS {
            let _ = write!(text, "| {} |", work.name);
            for allocator in 0..self.names.len() {
                let runs = self.figures.get(&(work.name, allocator));
                let mut values: Vec<f64> = runs.into_iter().flatten().map(figure).collect();
                values.sort_by(f64::total_cmp);
                if let (Some(least), Some(most)) = (values.first(), values.last()) {
                    let median = values[values.len() / 2];
                    let _ = write!(text, " {median:.1} ({least:.1}–{most:.1}) |");
                }
            }
            text.push('\n');
        }
    }
}
