//! The figures, and the table made of them.

use std::fmt::Write;

use crate::guest::System;

/// What a program's line with a figure starts with.
const MARK: &str = "figure ";

/// Rows in the order in which they were first read.
#[derive(Debug, Default)]
pub struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    name: String,
    /// By the systems' order in [`System::ALL`].
    figures: [Option<f64>; System::ALL.len()],
}

impl Table {
    /// Takes the lines `figure NAME: NUMBER` of what a program wrote.
    pub fn read(&mut self, system: System, console: &str) {
        let lines = console
            .lines()
            .filter_map(|line| line.trim().strip_prefix(MARK));
        for line in lines {
            if let Some((name, number)) = line.rsplit_once(": ")
                && let Ok(figure) = number.parse()
            {
                self.row(name).figures[system as usize] = Some(figure);
            }
        }
    }

    fn row(&mut self, name: &str) -> &mut Row {
        let index = match self.0.iter().position(|row| row.name == name) {
            Some(index) => index,
            None => {
                self.0.push(Row {
                    name: name.into(),
                    figures: [None; _],
                });
                self.0.len() - 1
            }
        };
        &mut self.0[index]
    }

    /// The table in Markdown.
    pub fn to_markdown(&self) -> String {
        let headings = System::ALL.map(System::name).join(" | ");
        let mut text =
            format!("| instructions, median | {headings} | ratio |\n|---|---|---|---|---|\n");
        for Row { name, figures } in &self.0 {
            let cells = figures.map(cell).join(" | ");
            let [_, linux, sietch] = figures;
            let ratio = linux.zip(*sietch).map_or("–".into(), |(linux, sietch)| {
                let mark = if sietch <= linux { "**" } else { "" };
                format!("{mark}{:.2}{mark}", sietch / linux)
            });
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {name} | {cells} | {ratio} |");
        }
        text
    }
}

/// Whole instructions.
fn cell(figure: Option<f64>) -> String {
    figure.map_or("–".into(), |figure| format!("{figure:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_against_linux_without_mitigations() {
        let mut table = Table::default();
        table.read(System::Linux, "figure a: b: 400.0\nnoise\n");
        table.read(System::LinuxBare, "figure a: b: 200.0\r\n");
        table.read(System::Sietch, "figure a: b: 100.0\n");
        let text = table.to_markdown();
        assert!(
            text.contains("| a: b | 400 | 200 | 100 | **0.50** |"),
            "{text}"
        );
    }

    #[test]
    fn a_row_that_one_system_lacks_has_no_ratio() {
        let mut table = Table::default();
        table.read(System::Sietch, "figure a: 1\n");
        assert!(table.to_markdown().contains("| a | – | – | 1 | – |"));
    }
}
