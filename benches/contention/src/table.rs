//! The table: a row for each kind of request, a column for each machine.

/// Waits in so many requests are what a field of the table says.
const REQUESTS: f64 = 1000.0;

/// Figures as they come, machine by machine.
#[derive(Default, Debug)]
pub struct Table {
    rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    /// Adds the lines `load NAME REQUESTS WAITS` of a machine.
    ///
    /// Errors: what the machine said, if there is no such line.
    pub fn read(&mut self, said: &str) -> Result<(), String> {
        let mut any = false;
        for (name, figure) in said.lines().filter_map(parse) {
            any = true;
            match self.rows.iter_mut().find(|(known, _)| known == name) {
                Some((_, figures)) => figures.push(figure),
                None => self.rows.push((name.into(), vec![figure])),
            }
        }
        match any {
            true => Ok(()),
            false => Err(format!("a machine has no figures: {said}")),
        }
    }

    /// The table's text.
    pub fn to_markdown(&self, cpus: &[u8]) -> String {
        let columns: String = cpus.iter().map(|cpus| format!(" {cpus} CPUs |")).collect();
        let line = "---:|".repeat(cpus.len());
        let mut text =
            format!("| acquisitions that waited, in 1000 requests |{columns}\n|---|{line}\n");
        for (name, figures) in &self.rows {
            let fields: String = figures
                .iter()
                .map(|figure| format!(" {figure:.1} |"))
                .collect();
            text += &format!("| {name} |{fields}\n");
        }
        text
    }
}

fn parse(line: &str) -> Option<(&str, f64)> {
    let mut words = line.strip_prefix("load ")?.split_whitespace();
    let name = words.next()?;
    let mut number = || words.next()?.parse::<f64>().ok();
    let (requests, waits) = (number()?, number()?);
    Some((name, waits * REQUESTS / requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_is_a_column_and_each_load_a_row() {
        let mut table = Table::default();
        for said in [
            "boot\nload fork 500 5\n  a::Class 3\nload open 10 0",
            "load fork 100 3\nload open 10 1",
        ] {
            assert_eq!(table.read(said), Ok(()));
        }
        let text = table.to_markdown(&[2, 4]);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows, ["| fork | 10.0 | 30.0 |", "| open | 0.0 | 100.0 |"]);
    }

    #[test]
    fn a_machine_without_figures_is_an_error() {
        assert!(Table::default().read("panic\nload fork x y").is_err());
    }
}
