//! The figures, and the table made of them.

use std::fs;
use std::process::Command;

use crate::guest::System;

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The greater: a rate.
    More,
    /// The smaller: a time or a size.
    Less,
}

/// Rows in the order in which they were first measured.
#[derive(Debug, Default)]
pub struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    name: String,
    better: Better,
    linux: Vec<f64>,
    sietch: Vec<f64>,
}

impl Table {
    /// Adds one round's figure.
    pub fn add(&mut self, name: &str, better: Better, system: System, figure: f64) {
        eprintln!("  {name}: {}", shown(figure));
        let index = match self.0.iter().position(|row| row.name == name) {
            Some(index) => index,
            None => {
                self.0.push(Row {
                    name: name.into(),
                    better,
                    linux: vec![],
                    sietch: vec![],
                });
                self.0.len() - 1
            }
        };
        let row = &mut self.0[index];
        match system {
            System::Linux => row.linux.push(figure),
            System::Sietch => row.sietch.push(figure),
        }
    }

    /// The table in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from(
            "| one vCPU, 512 MiB, median (min–max) | Linux | Sietch | Sietch / Linux |\n|---|---|---|---|\n",
        );
        for row in &self.0 {
            let (linux, sietch) = (median(&row.linux), median(&row.sietch));
            let ratio = linux.zip(sietch).map_or("–".into(), |(linux, sietch)| {
                let wins = match row.better {
                    Better::More => sietch >= linux,
                    Better::Less => sietch <= linux,
                };
                let mark = if wins { "**" } else { "" };
                format!("{mark}{:.2}{mark}", sietch / linux)
            });
            let cells = [&row.linux, &row.sietch].map(|figures| cell(figures));
            text += &format!("| {} | {} | {} | {ratio} |\n", row.name, cells[0], cells[1]);
        }
        text
    }
}

fn cell(figures: &[f64]) -> String {
    let Some(median) = median(figures) else {
        return "–".into();
    };
    let min = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let max = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match figures.len() {
        1 => shown(median),
        _ => format!("{} ({}–{})", shown(median), shown(min), shown(max)),
    }
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Three significant digits.
fn shown(figure: f64) -> String {
    match figure.abs() {
        0.0..1.0 => format!("{figure:.3}"),
        1.0..10.0 => format!("{figure:.2}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

/// Writes `docs/bench.md`.
pub fn write_page(table: &str, rounds: u32) -> Result<(), String> {
    let output = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default()
            .lines()
            .next()
            .unwrap_or("?")
            .to_string()
    };
    let page = format!(
        "# Measured against Linux\n\n\
        `make bench` wrote this page on {date}. Both systems ran as guests on the same host in\n\
        {rounds} alternating rounds: the same QEMU flags, image, program and client; one virtual CPU,\n\
        virtio-net on a tap interface in a network namespace. A bold ratio is one that Sietch wins.\n\n\
        - {qemu}, emulated (TCG)\n- {redis}\n- Linux: {linux}\n\n{table}",
        date = output("date", &["-u", "+%Y-%m-%d"]),
        qemu = output("qemu-system-x86_64", &["--version"]),
        redis = output("redis-server", &["--version"]),
        linux = output("file", &["-b", "build/linux/vmlinuz"]),
    );
    fs::create_dir_all("docs")
        .and_then(|()| fs::write("docs/bench.md", page))
        .map_err(|error| format!("docs/bench.md: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let mut table = Table::default();
        for figure in [10.0, 30.0, 20.0] {
            table.add("rate", Better::More, System::Linux, figure);
            table.add("rate", Better::More, System::Sietch, figure * 1.5);
        }
        let text = table.to_markdown();
        assert!(
            text.contains("| rate | 20.0 (10.0–30.0) | 30.0 (15.0–45.0) | **1.50** |"),
            "{text}"
        );
    }

    #[test]
    fn a_row_that_one_system_lacks_has_no_ratio() {
        let mut table = Table::default();
        table.add("rate", Better::More, System::Linux, 1.0);
        assert!(table.to_markdown().contains("| rate | 1.00 | – | – |"));
    }
}
