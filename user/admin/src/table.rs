//! Tables, for people and for scripts.
//!
//! People get columns of fixed width under a head; a value that is too wide goes on below
//! if it is a list, and pushes the rest aside if not. Scripts get lines of fields between
//! colons, without a head; `:` and `\` in a value have a `\` in front, unless one field
//! is all that was asked for.

use clap::Args;

/// A column: its head, and its width with the space behind it.
#[derive(Clone, Copy, Debug)]
pub struct Column(pub &'static str, pub usize);

/// How a table is to look.
#[derive(Args, Clone, Debug)]
pub struct Output {
    /// Print fields between colons, for scripts; needs -o
    #[arg(
        short = 'p',
        long = "parsable",
        alias = "parseable",
        requires = "fields"
    )]
    pub is_parsable: bool,
    /// Print these fields, in any case, or "all"
    #[arg(short = 'o', long = "output", value_name = "FIELD,...")]
    pub fields: Option<String>,
}

/// The same for commands whose -p names properties.
#[derive(Args, Clone, Debug)]
pub struct PropOutput {
    /// Print fields between colons, for scripts; needs -o
    #[arg(
        short = 'c',
        long = "parsable",
        alias = "parseable",
        requires = "fields"
    )]
    is_parsable: bool,
    /// Print these fields, in any case, or "all"
    #[arg(short = 'o', long = "output", value_name = "FIELD,...")]
    fields: Option<String>,
}

impl From<PropOutput> for Output {
    fn from(output: PropOutput) -> Self {
        Self {
            is_parsable: output.is_parsable,
            fields: output.fields,
        }
    }
}

impl Output {
    /// The same, with these fields where none were asked for.
    pub fn or_fields(&self, fields: &str) -> Self {
        Self {
            fields: Some(self.fields.clone().unwrap_or_else(|| fields.into())),
            ..*self
        }
    }

    /// The places of the columns that were asked for.
    fn choose(&self, columns: &[Column]) -> Result<Vec<usize>, String> {
        let all = (0..columns.len()).collect();
        let fields = match self.fields.as_deref() {
            None => return Ok(all),
            Some(fields) if fields.eq_ignore_ascii_case("all") => return Ok(all),
            Some(fields) => fields.split(','),
        };
        let place = |field: &str| {
            let mut names = columns.iter().map(|Column(name, _)| name);
            let at = names.position(|name| name.eq_ignore_ascii_case(field));
            at.ok_or_else(|| format!("there is no field {field}"))
        };
        fields.map(place).collect()
    }

    /// The table's text. Without rows there is none.
    pub fn table(&self, columns: &[Column], rows: &[Vec<String>]) -> Result<String, String> {
        let chosen = self.choose(columns)?;
        if self.is_parsable || rows.is_empty() {
            return Ok(self.lines(&chosen, rows));
        }
        let head = columns.iter().map(|Column(name, _)| (*name).into());
        let mut text = human_row(columns, &chosen, &head.collect::<Vec<_>>());
        text += &self.rows(columns, rows)?;
        Ok(text)
    }

    /// The table without its head.
    pub fn rows(&self, columns: &[Column], rows: &[Vec<String>]) -> Result<String, String> {
        let chosen = self.choose(columns)?;
        if self.is_parsable {
            return Ok(self.lines(&chosen, rows));
        }
        let rows = rows.iter().map(|row| human_row(columns, &chosen, row));
        Ok(rows.collect())
    }

    fn lines(&self, chosen: &[usize], rows: &[Vec<String>]) -> String {
        let line = |row: &Vec<String>| match chosen {
            &[only] => row[only].clone() + "\n",
            many => {
                let fields: Vec<String> = many.iter().map(|at| escape(&row[*at])).collect();
                fields.join(":") + "\n"
            }
        };
        rows.iter().map(line).collect()
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(':', "\\:")
}

/// A row, on as many lines as its longest list takes.
fn human_row(columns: &[Column], chosen: &[usize], row: &[String]) -> String {
    let cells = chosen.iter().map(|&at| wrap(&row[at], columns[at].1));
    let cells: Vec<Vec<String>> = cells.collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..lines {
        let mut printed = String::new();
        for (cell, &at) in cells.iter().zip(chosen) {
            let width = columns[at].1 - 1;
            let part = cell.get(line).map_or("", String::as_str);
            printed += &format!("{part:<width$} ");
        }
        text.push_str(printed.trim_end());
        text.push('\n');
    }
    text
}

/// A value in parts that fit, cut behind commas.
fn wrap(value: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in value.split_inclusive(',') {
        match lines.last_mut() {
            Some(last) if last.is_empty() || last.len() + part.len() < width => last.push_str(part),
            _ => lines.push(part.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column("LINK", 8), Column("VALUE", 12), Column("OVER", 6)];

    fn output(is_parsable: bool, fields: Option<&str>) -> Output {
        Output {
            is_parsable,
            fields: fields.map(String::from),
        }
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(String::from).to_vec()
    }

    #[test]
    fn people_see_columns_and_lists_that_go_on_below() {
        let rows = [row(["net0", "10.0.0.1,10.0.0.2,::1", "--"])];
        let text = output(false, None).table(&COLUMNS, &rows);
        let expected = concat!(
            "LINK    VALUE       OVER\n",
            "net0    10.0.0.1,   --\n",
            "        10.0.0.2,\n",
            "        ::1\n",
        );
        assert_eq!(text.as_deref(), Ok(expected));
        let wide = [row(["averylongname0", "x", "y"])];
        let text = output(false, None).rows(&COLUMNS, &wide);
        assert_eq!(text.as_deref(), Ok("averylongname0 x           y\n"));
        assert_eq!(output(false, None).table(&COLUMNS, &[]).as_deref(), Ok(""));
    }

    #[test]
    fn scripts_see_escaped_fields_and_a_single_field_as_it_is() {
        let rows = [row(["net0", r"a:b\c", "--"])];
        let two = output(true, Some("value,LINK")).table(&COLUMNS, &rows);
        assert_eq!(two.as_deref(), Ok("a\\:b\\\\c:net0\n"));
        let one = output(true, Some("Value")).table(&COLUMNS, &rows);
        assert_eq!(one.as_deref(), Ok("a:b\\c\n"));
        let all = output(true, Some("ALL")).table(&COLUMNS, &rows);
        assert_eq!(all.as_deref(), Ok("net0:a\\:b\\\\c:--\n"));
        assert!(output(true, Some("link,")).table(&COLUMNS, &rows).is_err());
    }
}
