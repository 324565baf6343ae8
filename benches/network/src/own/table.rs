//! Figures of several rounds, a column for each network.

use bench_pair::{median, shown};

use super::network::Network;

/// Rows in the order in which they were first measured.
#[derive(Debug, Default)]
pub struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    name: String,
    /// By the networks' order in [`Network::ALL`].
    figures: [Vec<f64>; Network::ALL.len()],
}

impl Table {
    /// Adds one round's figure.
    pub fn add(&mut self, name: &str, network: Network, figure: f64) {
        eprintln!("  {name}: {}", shown(figure));
        let index = match self.0.iter().position(|row| row.name == name) {
            Some(index) => index,
            None => {
                self.0.push(Row {
                    name: name.into(),
                    figures: [const { vec![] }; _],
                });
                self.0.len() - 1
            }
        };
        self.0[index].figures[network as usize].push(figure);
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In Markdown: medians, their spread, and their ratio to Linux' where that was measured.
    pub fn to_markdown(&self, heading: &str) -> String {
        let has_any = |network: &Network| {
            self.0
                .iter()
                .any(|row| !row.figures[*network as usize].is_empty())
        };
        let networks: Vec<Network> = Network::ALL.into_iter().filter(has_any).collect();
        let names: Vec<&str> = networks.iter().map(|network| network.name()).collect();
        let mut text = format!(
            "| {heading} | {} |\n|---|{}\n",
            names.join(" | "),
            "---:|".repeat(names.len())
        );
        for row in &self.0 {
            let figures = networks
                .iter()
                .map(|network| &row.figures[*network as usize]);
            let base = median(&row.figures[Network::Linux as usize]);
            let cells: Vec<String> = figures.map(|figures| cell(figures, base)).collect();
            text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
        }
        text
    }
}

/// The median, the least and the greatest where there are several, and the median's ratio to `base`.
fn cell(figures: &[f64], base: Option<f64>) -> String {
    let Some(middle) = median(figures) else {
        return "–".into();
    };
    let least = figures.iter().copied().fold(middle, f64::min);
    let greatest = figures.iter().copied().fold(middle, f64::max);
    let mut text = shown(middle);
    if figures.len() > 1 {
        text += &format!(" ({}–{})", shown(least), shown(greatest));
    }
    let ratio = base
        .map(|base| middle / base)
        .filter(|ratio| ratio.is_finite());
    match ratio.filter(|&ratio| ratio != 1.0) {
        Some(ratio) => format!("{text}, {ratio:.2}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_medians_to_linux() {
        let mut table = Table::default();
        for figure in [10.0, 30.0, 20.0] {
            table.add("rate", Network::Linux, figure);
            table.add("rate", Network::Function, figure * 2.0);
        }
        table.add("other", Network::Sockets, 1.0);
        let text = table.to_markdown("one vCPU");
        assert!(
            text.starts_with("| one vCPU | Linux | Sietch | VF |\n|---|---:|---:|---:|\n"),
            "{text}"
        );
        assert!(
            text.contains("| rate | 20.0 (10.0–30.0) | – | 40.0 (20.0–60.0), 2.00 |"),
            "{text}"
        );
        assert!(text.contains("| other | – | 1.00 | – |"), "{text}");
    }
}
