//! The figures, and the table made of them.

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
    /// By the systems' order in [`System::ALL`].
    figures: [Vec<f64>; System::ALL.len()],
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
                    figures: [const { vec![] }; _],
                });
                self.0.len() - 1
            }
        };
        self.0[index].figures[system as usize].push(figure);
    }

    /// The table in Markdown under a heading for its rows.
    pub fn to_markdown(&self, heading: &str) -> String {
        let systems = self.systems();
        let names: Vec<&str> = systems.iter().map(|system| system.name()).collect();
        let mut text = format!(
            "| {heading}, median (min–max) | {} | Sietch / Linux |\n|---|{}---|\n",
            names.join(" | "),
            "---|".repeat(systems.len()),
        );
        for row in &self.0 {
            let cells = systems.iter().map(|&system| cell(row.figures(system)));
            let cells: Vec<String> = cells.collect();
            text += &format!(
                "| {} | {} | {} |\n",
                row.name,
                cells.join(" | "),
                row.ratio()
            );
        }
        text
    }

    /// The systems that have a column: Linux without mitigations where it was measured.
    fn systems(&self) -> Vec<System> {
        let has_figures = |&system: &System| {
            system != System::Unmitigated
                || self.0.iter().any(|row| !row.figures(system).is_empty())
        };
        System::ALL.into_iter().filter(has_figures).collect()
    }

    /// A table of a machine with more CPUs, with the ratio of each figure to the same row of
    /// `base`, measured with one.
    pub fn to_markdown_beside(&self, base: &Self, heading: &str) -> String {
        let systems = self.systems();
        let names = systems
            .iter()
            .map(|system| format!(" {} | to one vCPU |", system.name()));
        let names: String = names.collect();
        let mut text = format!(
            "| {heading}, median (min–max) |{names} Sietch / Linux |\n|---|{}---|\n",
            "---|---|".repeat(systems.len()),
        );
        for row in &self.0 {
            text += &format!("| {} |", row.name);
            for &system in &systems {
                let one = base.0.iter().find(|one| one.name == row.name);
                let growth = one.and_then(|one| ratio(row.median(system), one.median(system)));
                let growth = growth.map_or("–".into(), |growth| format!("{growth:.2}"));
                text += &format!(" {} | {growth} |", cell(row.figures(system)));
            }
            text += &format!(" {} |\n", row.ratio());
        }
        text
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Row {
    fn figures(&self, system: System) -> &[f64] {
        &self.figures[system as usize]
    }

    fn median(&self, system: System) -> Option<f64> {
        median(self.figures(system))
    }

    /// Sietch's median divided by Linux's, bold where Sietch is not worse: by that of Linux
    /// without mitigations, the better one for Linux, where it was measured.
    fn ratio(&self) -> String {
        let linux = self.median(System::Unmitigated);
        let linux = linux.or_else(|| self.median(System::Linux));
        let ratio = ratio(self.median(System::Sietch), linux);
        let Some(ratio) = ratio else {
            return "–".into();
        };
        let wins = match self.better {
            Better::More => ratio >= 1.0,
            Better::Less => ratio <= 1.0,
        };
        let mark = if wins { "**" } else { "" };
        format!("{mark}{ratio:.2}{mark}")
    }
}

/// None if a figure lacks or there is nothing to compare with.
fn ratio(figure: Option<f64>, to: Option<f64>) -> Option<f64> {
    let (figure, to) = figure.zip(to)?;
    (to > 0.0).then(|| figure / to)
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

/// The middle one, or what is between the two middle ones.
pub fn median(figures: &[f64]) -> Option<f64> {
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
pub fn shown(figure: f64) -> String {
    match figure.abs() {
        0.0..1.0 => format!("{figure:.3}"),
        1.0..10.0 => format!("{figure:.2}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
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
        let text = table.to_markdown("CPU");
        assert!(
            text.contains("| rate | 20.0 (10.0–30.0) | 30.0 (15.0–45.0) | **1.50** |"),
            "{text}"
        );
    }

    #[test]
    fn the_ratio_is_against_linux_without_mitigations_where_that_was_measured() {
        let mut table = Table::default();
        table.add("rate", Better::More, System::Linux, 10.0);
        table.add("rate", Better::More, System::Unmitigated, 20.0);
        table.add("rate", Better::More, System::Sietch, 30.0);
        table.add("other", Better::More, System::Linux, 10.0);
        table.add("other", Better::More, System::Sietch, 30.0);
        let text = table.to_markdown("CPU");
        assert!(
            text.contains("| rate | 10.0 | 20.0 | 30.0 | **1.50** |"),
            "{text}"
        );
        assert!(
            text.contains("| other | 10.0 | – | 30.0 | **3.00** |"),
            "{text}"
        );
        let heads = text.lines().take(2).map(|line| line.matches('|').count());
        assert!(heads.into_iter().all(|bars| bars == 6), "{text}");
    }

    #[test]
    fn a_row_that_one_system_lacks_has_no_ratio() {
        let mut table = Table::default();
        table.add("rate", Better::More, System::Linux, 1.0);
        assert!(table.to_markdown("CPU").contains("| rate | 1.00 | – | – |"));
    }

    #[test]
    fn figures_with_more_cpus_stand_beside_those_with_one() {
        let (mut one, mut two) = (Table::default(), Table::default());
        for system in System::BOTH {
            one.add("rate", Better::More, system, 10.0);
        }
        two.add("rate", Better::More, System::Linux, 15.0);
        two.add("rate", Better::More, System::Sietch, 12.0);
        let text = two.to_markdown_beside(&one, "CPUs");
        assert!(
            text.contains("| rate | 15.0 | 1.50 | 12.0 | 1.20 | 0.80 |"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_compared_with_zero() {
        let mut table = Table::default();
        table.add("CPU", Better::Less, System::Linux, 0.0);
        table.add("CPU", Better::Less, System::Sietch, 0.0);
        assert!(table.to_markdown("idle").contains("| 0.000 | 0.000 | – |"));
    }
}
